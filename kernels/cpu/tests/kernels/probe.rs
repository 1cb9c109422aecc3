//! Operators that expose the functions which the library's operators are made of.

use crate::random::Random;
use dllm_cpu::isa::{Isa, LANES, Simd};
use dllm_cpu::ops::{Attention, attention_scratch_floats};
use dllm_cpu::{Kernels, Op, math};

/// `x = e^x`, for a multiple of eight values.
pub struct Exp<'a>(pub &'a mut [f32]);

impl Op for Exp<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let s = isa.v();
        for x in self.0.chunks_exact_mut(LANES) {
            let y = math::exp(s, s.load(x));
            s.store(x, y);
        }
    }
}

/// `e^x` of any number of values.
pub fn exp(kernels: Kernels, x: &[f32]) -> Vec<f32> {
    let mut y = x.to_vec();
    y.resize(x.len().next_multiple_of(LANES), 0.0);
    kernels.run(Exp(&mut y));
    y.truncate(x.len());
    y
}

/// Every operation on vectors, as bits one after another.
pub struct EveryOperation {
    pub a: [f32; 8],
    pub b: [f32; 8],
    pub c: [f32; 8],
    pub p: [u8; 32],
    pub q: [u8; 32],
}

impl Op for EveryOperation {
    type Output = Vec<[u32; 8]>;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> Vec<[u32; 8]> {
        let s = isa.v();
        let mut out = vec![];
        let (a, b, c) = (s.load(&self.a), s.load(&self.b), s.load(&self.c));
        let (p, q) = (s.load_bytes(&self.p), s.load_bytes(&self.q));
        let small = s.min(s.max(a, s.splat(-126.4)), s.splat(127.4));
        let table = std::array::from_fn(|i| (i * i + 1) as u8);
        let floats = [
            s.add(a, b),
            s.sub(a, b),
            s.mul(a, b),
            s.div(a, b),
            s.fma(a, b, c),
            s.fnma(a, b, c),
            s.max(a, b),
            s.min(a, b),
            s.abs(a),
            s.swap_pairs(a),
            s.double_lanes(a)[0],
            s.double_lanes(a)[1],
            s.to_f32(p),
            s.exp2_int(s.to_i32(small)),
        ];
        let integers = [
            s.to_i32(small),
            s.add_i32(p, q),
            s.sub_i32(p, q),
            s.mul_i32(p, q),
            s.dot_i16(p, q),
            s.low_nibbles(p),
            s.high_nibbles(p),
            s.look_up(&table, s.high_nibbles(p)),
            s.sub_bytes(p, q),
            s.pack_bytes([0, 8, 16, 24].map(|at| {
                s.load_i32(&std::array::from_fn(|i| i32::from(self.p[at + i].cast_signed())))
            })),
            s.splat_i32(i32::from(self.p[0]) - 9),
        ];
        let rotated =
            |by: usize| s.load(&std::array::from_fn::<f32, 8, _>(|i| self.a[(i + by) % 8]));
        let transposed = s.transpose(std::array::from_fn(|j| match j % 2 {
            0 => rotated(j),
            _ => s.splat(self.b[j]),
        }));
        for x in floats.into_iter().chain(transposed) {
            let mut lanes = [0.0; 8];
            s.store(&mut lanes, x);
            // Which NaN comes out is the processor's choice, and no kernel's result depends on it.
            out.push(lanes.map(|x| if x.is_nan() { !0 } else { x.to_bits() }));
        }
        for x in integers {
            let mut lanes = [0; 8];
            s.store_i32(&mut lanes, x);
            out.push(lanes.map(i32::cast_unsigned));
        }
        out
    }
}

/// One head of attention, and the buffers around it.
#[derive(Clone)]
pub struct Head {
    pub q: Vec<f32>,
    pub scale: f32,
    pub k: Vec<f32>,
    pub v: Vec<f32>,
    pub keys: usize,
    pub width: usize,
    pub key_stride: usize,
    pub value_stride: usize,
}

impl Head {
    /// Random queries and keys whose scores reach about `reach`; everything beyond the keys, and
    /// between the rows of keys and values, is `poison`.
    pub fn random(
        random: &mut Random,
        [queries, keys, width]: [usize; 3],
        reach: f32,
        poison: f32,
    ) -> Head {
        let (key_stride, value_stride) = (width + 3, width + 8);
        let mut rows = |stride| {
            let mut rows = vec![poison; (keys + 2) * stride];
            for row in rows.chunks_mut(stride).take(keys) {
                row[..width].copy_from_slice(&random.floats(width, 1.0));
            }
            rows
        };
        let (k, v) = (rows(key_stride), rows(value_stride));
        // A score is a sum of `width` products of deviation q / 3, so of deviation about reach/3.
        let scale = 0.37;
        let q = random.floats(queries * width, reach / scale / (width as f32).sqrt());
        Head { q, scale, k, v, keys, width, key_stride, value_stride }
    }

    /// How many queries there are.
    pub fn queries(&self) -> usize {
        self.q.len() / self.width
    }

    /// `[queries][width]`, from scratch space and an output that were NaN.
    pub fn run(&self, kernels: Kernels) -> Vec<f32> {
        let mut out = vec![f32::NAN; self.q.len()];
        let mut scratch = vec![f32::NAN; attention_scratch_floats(self.width)];
        kernels.run(Attention {
            q: &self.q,
            scale: self.scale,
            k: &self.k,
            key_stride: self.key_stride,
            v: &self.v,
            value_stride: self.value_stride,
            keys: self.keys,
            head_width: self.width,
            scratch: &mut scratch,
            out: &mut out,
        });
        out
    }
}
