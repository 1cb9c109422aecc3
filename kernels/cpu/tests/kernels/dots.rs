//! The dot product of each instruction set, against integers.

use crate::random::Random;
use dllm_cpu::isa::{Isa, Simd};
use dllm_cpu::{Kernels, Op};

/// What to do with 32 weights and 32 activations.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// Unsigned weights, added this many times before they are widened.
    Chain(usize),
    /// Signed weights, once.
    Signed,
}

/// Dot products of four weights and four activations a lane, widened with a scale.
#[derive(Clone, Copy, Debug)]
struct Dot {
    w: [u8; 32],
    x: [i8; 32],
    scale: i32,
    way: Way,
}

impl Op for Dot {
    type Output = [i32; 8];

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> [i32; 8] {
        let v = isa.v();
        let w = v.load_bytes(&self.w);
        let x = v.load_bytes(&self.x.map(i8::cast_unsigned));
        let sum = match self.way {
            Way::Signed => isa.dot_signed(w, x),
            Way::Chain(n) => {
                let mut sum = isa.dot(w, x);
                for _ in 1..n {
                    sum = isa.dot_add(sum, w, x);
                }
                sum
            }
        };
        let mut lanes = [0; 8];
        v.store_i32(&mut lanes, isa.widen(sum, isa.scale_lanes(v.splat_i32(self.scale))));
        lanes
    }
}

impl Dot {
    fn expected(&self) -> [i32; 8] {
        std::array::from_fn(|lane| {
            let products = (4 * lane..4 * lane + 4).map(|i| {
                let w = match self.way {
                    Way::Chain(_) => i64::from(self.w[i]),
                    Way::Signed => i64::from(self.w[i].cast_signed()),
                };
                w * i64::from(self.x[i])
            });
            let times = if let Way::Chain(n) = self.way { n as i64 } else { 1 };
            i32::try_from(products.sum::<i64>() * times * i64::from(self.scale)).unwrap()
        })
    }

    fn check(self, kernels: Kernels) {
        let (want, got) = (self.expected(), kernels.run(self));
        assert!(got == want, "{}: {got:?} instead of {want:?} from {self:?}", kernels.name());
    }
}

/// The limits that an instruction set states.
struct Limits;

impl Op for Limits {
    /// The largest unsigned code, and the depth for each code up to it.
    type Output = (u32, Vec<usize>);

    fn run<I: Isa>(self, _isa: I) -> Self::Output {
        (I::UNSIGNED_MAX, (0..=I::UNSIGNED_MAX).map(|code| I::depth(code.max(1))).collect())
    }
}

/// More links than any kernel makes (eight in a sub-block), for sets without a limit.
const LINKS_MAX: usize = 64;

/// Lanes of all +127, all -127, alternating, and the two pairs of a lane against each other.
const EXTREME: [i8; 32] = {
    let signs = [[1, 1, 1, 1], [-1, -1, -1, -1], [1, -1, 1, -1], [1, 1, -1, -1]];
    let mut x = [0; 32];
    let mut i = 0;
    while i < 32 {
        x[i] = 127 * signs[i / 4 % 4][i % 4];
        i += 1;
    }
    x
};

#[test]
fn isa_dots_of_the_largest_codes_are_exact_to_the_stated_depth() {
    for kernels in Kernels::all() {
        let (code_max, depths) = kernels.run(Limits);
        for code in 1..=code_max {
            let depth = depths[code as usize].min(LINKS_MAX);
            assert!(depth >= 1, "{}: no depth for codes up to {code}", kernels.name());
            for way in [Way::Chain(1), Way::Chain(depth)] {
                for scale in [1, -32, 127] {
                    Dot { w: [code as u8; 32], x: EXTREME, scale, way }.check(kernels);
                }
            }
        }
    }
}

/// The sums of AVX2 are int16: one more link than the depth and the largest do not fit.
#[test]
fn one_link_more_overflows_avx2() {
    let Some(kernels) = Kernels::by_name("avx2") else { return };
    let (code_max, depths) = kernels.run(Limits);
    assert_eq!(code_max, 129);
    for code in 1..=code_max {
        let depth = depths[code as usize];
        let most = |links: usize| links as u32 * 2 * code * 127;
        assert!(most(depth) <= 32767 && most(depth + 1) > 32767, "codes up to {code}: {depth}");
        let way = Way::Chain(depth + 1);
        let dot = Dot { w: [code as u8; 32], x: [127; 32], scale: 1, way };
        assert_ne!(
            kernels.run(dot),
            dot.expected(),
            "codes up to {code}: {depth} could be one more"
        );
    }
    // And a larger code does not fit even once.
    let dot = Dot { w: [130; 32], x: [127; 32], scale: 1, way: Way::Chain(1) };
    assert_ne!(kernels.run(dot), dot.expected());
}

#[test]
fn isa_signed_dots_of_every_weight() {
    for kernels in Kernels::all() {
        for w in 0..=255 {
            Dot { w: [w; 32], x: EXTREME, scale: 1, way: Way::Signed }.check(kernels);
        }
    }
}

#[test]
fn signed_dots_of_every_weight_and_activation() {
    for kernels in Kernels::all() {
        for w in 0..=255 {
            for x in -127..=127 {
                Dot { w: [w; 32], x: [x; 32], scale: 1, way: Way::Signed }.check(kernels);
            }
        }
    }
}

#[test]
fn isa_dots_of_random_bytes() {
    let mut random = Random(9);
    for _ in 0..200 {
        let x = std::array::from_fn(|_| random.integer(-127, 127) as i8);
        let w: [u8; 32] = std::array::from_fn(|_| random.bits() as u8);
        let scale = random.integer(-128, 127) as i32;
        for kernels in Kernels::all() {
            let low = w.map(|w| w % 16);
            Dot { w: low, x, scale, way: Way::Chain(8) }.check(kernels);
            let limit = u32::min(kernels.run(Limits).0, 255) as u8;
            Dot { w: w.map(|w| w.min(limit)), x, scale, way: Way::Chain(1) }.check(kernels);
            Dot { w, x, scale, way: Way::Signed }.check(kernels);
        }
    }
}
