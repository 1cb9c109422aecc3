//! The tensor types that can be read: one table of them, and the way from a type known at run time
//! to one known at compile time.
//!
//! Names, numbers and file block sizes are ggml's. A new type is a row of the table here and its
//! decoding in [`crate::decode`]; everything else follows.

// The types keep ggml's spelling, which is what files, errors and papers use.
#![allow(non_camel_case_types)]

mod format;

pub(crate) use format::{Facts, Format, SLOTS, SMALL_WEIGHTS, Tile, Unpack, WORDS};
pub use format::{GROUP_ROWS, PANEL_ROWS, SUPER_WEIGHTS};

/// What most float types share.
const FLOAT: Facts = Facts {
    number: 0,
    block_weights: 1,
    block_bytes: 2,
    scale_at: 0,
    sub: 1,
    nibble: false,
    min: false,
    table: None,
    code_max: 0,
    offset: 0,
};

/// What most types with an f16 scale for every 32 weights share.
const SMALL: Facts = Facts { block_weights: SMALL_WEIGHTS, sub: 32, ..FLOAT };

/// What most types with integer scales under an f16 scale for every 256 weights share.
const SUPER: Facts = Facts { block_weights: SUPER_WEIGHTS, sub: 32, ..FLOAT };

/// What the IQ4 types share: the values of ggml's `kvalues_iq4nl` plus 127, so that they are
/// unsigned.
const IQ4: Facts = Facts {
    nibble: true,
    table: Some([0, 23, 44, 62, 78, 92, 105, 117, 128, 140, 152, 165, 180, 196, 216, 240]),
    code_max: 240,
    offset: 127,
    ..FLOAT
};

/// A row of the table of types.
struct Row {
    name: &'static str,
    facts: Facts,
    packed_bytes: usize,
}

/// Makes of the table the enumeration, a marker for each quantized type, and the [`Dtype::visit`]
/// that leads from one to the other.
macro_rules! types {
    (
        floats: $($(#[$float_doc:meta])* $float:ident = $float_facts:expr),*;
        quantized: $($(#[$doc:meta])* $name:ident = $facts:expr),*;
    ) => {
        /// A tensor type of a GGUF file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Dtype {
            $($(#[$float_doc])* $float,)*
            $($(#[$doc])* $name,)*
        }

        $(
            #[derive(Clone, Copy)]
            pub(crate) struct $name;

            impl Format for $name {
                const FACTS: Facts = $facts;
            }
        )*

        static TYPES: [Row; Dtype::ALL.len()] = [
            $(Row { name: stringify!($float), facts: $float_facts, packed_bytes: 0 },)*
            $(Row {
                name: stringify!($name),
                facts: $name::FACTS,
                packed_bytes: $name::BLOCK_BYTES,
            },)*
        ];

        impl Dtype {
            /// Every type, floats first.
            pub const ALL: [Dtype; [$(stringify!($float),)* $(stringify!($name),)*].len()] =
                [$(Dtype::$float,)* $(Dtype::$name,)*];

            /// Has `visitor` do its work for this type; `None` for the float types.
            pub(crate) fn visit<V: Visitor>(self, visitor: V) -> Option<V::Output> {
                match self {
                    $(Dtype::$float)|* => None,
                    $(Dtype::$name => Some(visitor.visit::<$name>()),)*
                }
            }
        }
    };
}

types! {
    floats:
    /// IEEE single precision.
    F32 = Facts { number: 0, block_bytes: 4, ..FLOAT },
    /// IEEE half precision.
    F16 = Facts { number: 1, ..FLOAT },
    /// The upper half of an IEEE single.
    BF16 = Facts { number: 30, ..FLOAT };

    quantized:
    // An f16 scale, (an f16 min,) (32 fifth bits,) then 32 codes.
    /// 4 bits, a scale per 32.
    Q4_0 =
        Facts { number: 2, block_bytes: 2 + 16, nibble: true, code_max: 15, offset: 8, ..SMALL },
    /// 4 bits, a scale and an added min per 32.
    Q4_1 = Facts {
        number: 3, block_bytes: 2 + 2 + 16, nibble: true, min: true, code_max: 15, ..SMALL
    },
    /// 5 bits, a scale per 32.
    Q5_0 = Facts { number: 6, block_bytes: 2 + 4 + 16, code_max: 31, offset: 16, ..SMALL },
    /// 5 bits, a scale and an added min per 32.
    Q5_1 = Facts { number: 7, block_bytes: 2 + 2 + 4 + 16, min: true, code_max: 31, ..SMALL },
    // The unsigned code is the file's signed one plus 128.
    /// 8 bits, a scale per 32.
    Q8_0 = Facts { number: 8, block_bytes: 2 + 32, code_max: 255, offset: 128, ..SMALL },
    // Scales and mins, codes, f16 super-scale and super-min.
    /// 2 bits, 4-bit scales and mins per 16 under a scale and a min per 256.
    Q2_K = Facts {
        number: 10, block_bytes: 16 + 64 + 2 + 2, scale_at: 80, sub: 16, nibble: true, min: true,
        code_max: 3, ..SUPER
    },
    // Third bits, low two bits, 16 six-bit scales, f16 super-scale.
    /// 3 bits, 6-bit signed scales per 16 under a scale per 256.
    Q3_K = Facts {
        number: 11, block_bytes: 32 + 64 + 12 + 2, scale_at: 108, sub: 16, nibble: true,
        code_max: 7, offset: 4, ..SUPER
    },
    // f16 super-scale and super-min, 16 six-bit scales and mins, (fifth bits,) codes.
    /// 4 bits, 6-bit scales and mins per 32 under a scale and a min per 256.
    Q4_K = Facts {
        number: 12, block_bytes: 2 + 2 + 12 + 128, nibble: true, min: true, code_max: 15, ..SUPER
    },
    /// 5 bits, 6-bit scales and mins per 32 under a scale and a min per 256.
    Q5_K =
        Facts { number: 13, block_bytes: 2 + 2 + 12 + 32 + 128, min: true, code_max: 31, ..SUPER },
    // Low four bits, high two bits, 16 one-byte scales, f16 super-scale.
    /// 6 bits, 8-bit signed scales per 16 under a scale per 256.
    Q6_K = Facts {
        number: 14, block_bytes: 128 + 64 + 16 + 2, scale_at: 208, sub: 16, code_max: 63,
        offset: 32, ..SUPER
    },
    // As Q4_0.
    /// A table of 16 values, a scale per 32.
    IQ4_NL =
        Facts { number: 20, block_weights: SMALL_WEIGHTS, block_bytes: 2 + 16, sub: 32, ..IQ4 },
    // f16 super-scale, high two bits and low four bits of 8 scales, codes.
    /// A table of 16 values, 6-bit signed scales per 32 under a scale per 256.
    IQ4_XS = Facts {
        number: 23, block_weights: SUPER_WEIGHTS, block_bytes: 2 + 2 + 4 + 128, sub: 32, ..IQ4
    };
}

/// What is to be done with a quantized type, whichever it is.
pub(crate) trait Visitor {
    type Output;
    fn visit<F: Unpack>(self) -> Self::Output;
}

impl Dtype {
    const fn row(self) -> &'static Row {
        &TYPES[self as usize]
    }

    /// The type with this number in a GGUF tensor record (ggml's `enum ggml_type`), or `None` if
    /// it is not one that can be read.
    pub fn from_ggml(number: u32) -> Option<Dtype> {
        Dtype::ALL.into_iter().find(|dtype| dtype.row().facts.number == number)
    }

    /// ggml's spelling, such as `Q4_K`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Weights in one block of the file; 1 for the float types.
    pub const fn block_weights(self) -> usize {
        self.row().facts.block_weights
    }

    /// Bytes of one block of the file (ggml's `type_size`).
    pub const fn block_bytes(self) -> usize {
        self.row().facts.block_bytes
    }

    /// Bytes of a packed block; 0 for the float types, which have none.
    pub(crate) const fn packed_block_bytes(self) -> usize {
        self.row().packed_bytes
    }

    /// Whether this is F32, F16 or BF16, which are multiplied as f32 and never quantized.
    pub const fn is_float(self) -> bool {
        self.block_weights() == 1
    }

    /// Bytes of a row of `cols` weights in the file, or `None` if `cols` is not a whole number of
    /// blocks or the size overflows.
    pub const fn row_bytes(self, cols: usize) -> Option<usize> {
        if !cols.is_multiple_of(self.block_weights()) {
            return None;
        }
        (cols / self.block_weights()).checked_mul(self.block_bytes())
    }
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}
