//! Writes GGUF files for tests, valid ones and broken ones. Shares no code with the reader.

#![allow(dead_code, reason = "every test that includes this uses another part of it")]

/// Numbers of the metadata types, as the specification has them.
pub mod value_type {
    pub const U8: u32 = 0;
    pub const I8: u32 = 1;
    pub const U16: u32 = 2;
    pub const I32: u32 = 5;
    pub const U32: u32 = 4;
    pub const F32: u32 = 6;
    pub const BOOL: u32 = 7;
    pub const STRING: u32 = 8;
    pub const ARRAY: u32 = 9;
    pub const U64: u32 = 10;
    pub const I64: u32 = 11;
    pub const F64: u32 = 12;
}

/// Numbers of the tensor types, as the specification has them.
pub mod tensor_type {
    pub const F32: u32 = 0;
    pub const F16: u32 = 1;
    pub const Q4_0: u32 = 2;
    pub const Q4_1: u32 = 3;
    pub const Q5_0: u32 = 6;
    pub const Q5_1: u32 = 7;
    pub const Q8_0: u32 = 8;
    pub const Q2_K: u32 = 10;
    pub const Q3_K: u32 = 11;
    pub const Q4_K: u32 = 12;
    pub const Q5_K: u32 = 13;
    pub const Q6_K: u32 = 14;
    pub const IQ4_NL: u32 = 20;
    pub const IQ4_XS: u32 = 23;
    pub const BF16: u32 = 30;
}

/// A metadata value: its type and its bytes in the file.
#[derive(Clone)]
pub struct Field {
    pub ty: u32,
    pub bytes: Vec<u8>,
}

/// A tensor. Its offset is the next free place unless it is given.
#[derive(Clone)]
pub struct Tensor {
    pub name: Vec<u8>,
    pub shape: Vec<u64>,
    pub ty: u32,
    pub offset: Option<u64>,
    pub data: Vec<u8>,
}

/// A file to be. Fields are free to be made wrong before [`GgufWriter::bytes`].
#[derive(Clone)]
pub struct GgufWriter {
    pub magic: [u8; 4],
    pub version: u32,
    pub alignment: usize,
    /// Counts that the header states instead of the true ones.
    pub tensor_count: Option<u64>,
    pub key_count: Option<u64>,
    pub keys: Vec<(Vec<u8>, Field)>,
    pub tensors: Vec<Tensor>,
}

/// A finished file, and where its structures start.
pub struct Built {
    pub bytes: Vec<u8>,
    /// Names of structures and the byte offsets at which they start, in ascending order.
    pub marks: Vec<(String, usize)>,
}

impl GgufWriter {
    pub fn new() -> Self {
        Self {
            magic: *b"GGUF",
            version: 3,
            alignment: 32,
            tensor_count: None,
            key_count: None,
            keys: Vec::new(),
            tensors: Vec::new(),
        }
    }

    /// Adds a key, or replaces its value where it is.
    pub fn set(&mut self, key: &str, field: Field) -> &mut Self {
        match self.keys.iter_mut().find(|(name, _)| name == key.as_bytes()) {
            Some((_, old)) => *old = field,
            None => self.keys.push((key.as_bytes().to_vec(), field)),
        }
        self
    }

    pub fn remove(&mut self, key: &str) -> &mut Self {
        self.keys.retain(|(name, _)| name != key.as_bytes());
        self
    }

    pub fn u32(&mut self, key: &str, value: u32) -> &mut Self {
        self.set(key, Field { ty: value_type::U32, bytes: value.to_le_bytes().to_vec() })
    }

    pub fn f32(&mut self, key: &str, value: f32) -> &mut Self {
        self.set(key, Field { ty: value_type::F32, bytes: value.to_le_bytes().to_vec() })
    }

    pub fn bool(&mut self, key: &str, value: bool) -> &mut Self {
        self.set(key, Field { ty: value_type::BOOL, bytes: vec![u8::from(value)] })
    }

    pub fn str(&mut self, key: &str, value: &str) -> &mut Self {
        self.set(key, Field { ty: value_type::STRING, bytes: string(value.as_bytes()) })
    }

    pub fn strs<T: AsRef<[u8]>>(&mut self, key: &str, values: &[T]) -> &mut Self {
        let items: Vec<_> = values.iter().map(|value| string(value.as_ref())).collect();
        self.set(key, array(value_type::STRING, &items))
    }

    pub fn i32s(&mut self, key: &str, values: &[i32]) -> &mut Self {
        let items: Vec<_> = values.iter().map(|value| value.to_le_bytes().to_vec()).collect();
        self.set(key, array(value_type::I32, &items))
    }

    pub fn f32s(&mut self, key: &str, values: &[f32]) -> &mut Self {
        let items: Vec<_> = values.iter().map(|value| value.to_le_bytes().to_vec()).collect();
        self.set(key, array(value_type::F32, &items))
    }

    /// Adds a tensor, or replaces the one of this name.
    pub fn tensor(&mut self, name: &str, shape: &[u64], ty: u32, data: Vec<u8>) -> &mut Self {
        let name = name.as_bytes().to_vec();
        let tensor = Tensor { name, shape: shape.to_vec(), ty, offset: None, data };
        match self.tensors.iter_mut().find(|old| old.name == tensor.name) {
            Some(old) => *old = tensor,
            None => self.tensors.push(tensor),
        }
        self
    }

    /// Adds a tensor of `f32`s.
    pub fn f32_tensor(&mut self, name: &str, shape: &[u64], values: &[f32]) -> &mut Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensor(name, shape, tensor_type::F32, data)
    }

    /// The tensor of this name, to be made wrong.
    pub fn tensor_mut(&mut self, name: &str) -> &mut Tensor {
        let found = self.tensors.iter_mut().find(|tensor| tensor.name == name.as_bytes());
        found.unwrap_or_else(|| panic!("the test's file has no tensor {name}"))
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.build().bytes
    }

    pub fn build(&self) -> Built {
        let mut built = Built { bytes: Vec::new(), marks: Vec::new() };
        self.write_header(&mut built);
        for (key, field) in &self.keys {
            let shown = String::from_utf8_lossy(key).into_owned();
            built.put(&format!("key {shown}"), &string(key));
            built.put(&format!("type of {shown}"), &field.ty.to_le_bytes());
            built.put(&format!("value of {shown}"), &field.bytes);
        }
        self.write_tensors(&mut built);
        built
    }

    fn write_header(&self, built: &mut Built) {
        built.put("magic", &self.magic);
        built.put("version", &self.version.to_le_bytes());
        let tensor_count = self.tensor_count.unwrap_or(self.tensors.len() as u64);
        built.put("tensor count", &tensor_count.to_le_bytes());
        let key_count = self.key_count.unwrap_or(self.keys.len() as u64);
        built.put("key count", &key_count.to_le_bytes());
    }

    fn write_tensors(&self, built: &mut Built) {
        let mut next = 0usize;
        let mut places = Vec::new();
        for tensor in &self.tensors {
            let offset = tensor.offset.unwrap_or(next as u64);
            places.push(offset);
            if tensor.offset.is_none() {
                next = (next + tensor.data.len()).next_multiple_of(self.alignment);
            }
            let shown = String::from_utf8_lossy(&tensor.name).into_owned();
            built.put(&format!("name of tensor {shown}"), &string(&tensor.name));
            let dims = tensor.shape.len() as u32;
            built.put(&format!("dimensions of {shown}"), &dims.to_le_bytes());
            for (axis, dim) in tensor.shape.iter().enumerate() {
                built.put(&format!("dimension {axis} of {shown}"), &dim.to_le_bytes());
            }
            built.put(&format!("type of tensor {shown}"), &tensor.ty.to_le_bytes());
            built.put(&format!("offset of {shown}"), &offset.to_le_bytes());
        }
        let data_start = built.bytes.len().next_multiple_of(self.alignment);
        for (tensor, offset) in self.tensors.iter().zip(places) {
            built.put_data(tensor, data_start, offset);
        }
    }
}

impl Built {
    /// The byte offset at which the structure `mark` starts.
    pub fn at(&self, mark: &str) -> usize {
        let found = self.marks.iter().find(|(name, _)| name == mark);
        found.unwrap_or_else(|| panic!("the test's file has no mark {mark}")).1
    }

    /// Overwrites the bytes at `mark`.
    pub fn patch(mut self, mark: &str, bytes: &[u8]) -> Vec<u8> {
        let at = self.at(mark);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.bytes
    }

    fn put(&mut self, mark: &str, bytes: &[u8]) {
        self.marks.push((mark.to_owned(), self.bytes.len()));
        self.bytes.extend(bytes);
    }

    /// Writes the tensor's data where its offset says, if that is a place that a small file has.
    fn put_data(&mut self, tensor: &Tensor, data_start: usize, offset: u64) {
        let start = data_start as u64 + offset.min(1 << 30);
        if offset >= 1 << 30 || tensor.data.is_empty() {
            return;
        }
        let (start, end) = (start as usize, start as usize + tensor.data.len());
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[start..end].copy_from_slice(&tensor.data);
        let shown = String::from_utf8_lossy(&tensor.name).into_owned();
        self.marks.push((format!("data of {shown}"), start));
    }
}

/// A string as a file has it: its length, then its bytes.
pub fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u64).to_le_bytes()[..], bytes].concat()
}

/// An array of items that are already bytes.
pub fn array(of: u32, items: &[Vec<u8>]) -> Field {
    array_of_length(of, items.len() as u64, &items.concat())
}

/// An array that says it has `len` items.
pub fn array_of_length(of: u32, len: u64, bytes: &[u8]) -> Field {
    let bytes = [&of.to_le_bytes()[..], &len.to_le_bytes(), bytes].concat();
    Field { ty: value_type::ARRAY, bytes }
}
