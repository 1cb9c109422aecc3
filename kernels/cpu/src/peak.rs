//! The most that an instruction set can do of a type's arithmetic: a loop over registers alone.
//!
//! The loop has exactly the multiplies, adds and widenings that the products of the type's codes
//! need, and nothing else: no loads or stores, no unpacking, no mins, no zero points, no f32. A
//! GEMM is measured as a share of it, on the same core and clock.

use crate::dtype::{Dtype, Format, GROUP_ROWS, SUPER_WEIGHTS, Unpack, Visitor};
use crate::gemm::{chain_depth, signed};
use crate::isa::{Isa, Simd, VecI};
use crate::table::{Kernels, Op};
use core::marker::PhantomData;

/// What [`peak`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Multiply-adds.
    pub macs: u64,
    /// A sum over the results, the same in every run and instruction set.
    pub check: u64,
}

/// Sums at a time: as many as hide the latency of a multiply; with weights, activations, scales, a
/// product and the totals they fit 16 registers.
const CHAINS: usize = 10;
/// Where the sums are added up: more than one, so that no sum waits for the one before.
const TOTALS: usize = 2;

/// Multiplies `rounds` super-blocks of ten vectors of 8 rows in registers.
///
/// Float types are multiplied as f32: one fused multiply-add a weight.
pub fn peak(kernels: Kernels, dtype: Dtype, rounds: usize) -> Peak {
    let macs = (rounds * CHAINS * GROUP_ROWS * SUPER_WEIGHTS) as u64;
    let lanes = dtype.visit(Codes { kernels, rounds });
    let lanes = lanes.unwrap_or_else(|| kernels.run(FloatLoop(rounds)));
    Peak { macs, check: lanes.iter().map(|&lane| u64::from(lane.cast_unsigned())).sum() }
}

struct Codes {
    kernels: Kernels,
    rounds: usize,
}

impl Visitor for Codes {
    type Output = [i32; 8];

    fn visit<F: Unpack>(self) -> [i32; 8] {
        self.kernels.run(CodesLoop::<F> { rounds: self.rounds, format: PhantomData })
    }
}

struct CodesLoop<F> {
    rounds: usize,
    format: PhantomData<F>,
}

impl<F: Format> Op for CodesLoop<F> {
    type Output = [i32; 8];

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> [i32; 8] {
        let v = isa.v();
        // Codes and activations of 1, so that a vector's products sum to 4 a lane.
        let w = v.splat_i32(0x0101_0101);
        let mut registers = Registers { x: w, scale: isa.scale_lanes(v.splat_i32(1)) };
        let mut totals = [v.splat_i32(0); TOTALS];
        for _ in 0..self.rounds {
            for _ in 0..SUPER_WEIGHTS / F::SUB {
                sub_block::<I, F>(isa, w, &mut registers, &mut totals);
            }
        }
        let mut lanes = [0; 8];
        v.store_i32(&mut lanes, totals.into_iter().fold(v.splat_i32(0), |a, b| v.add_i32(a, b)));
        lanes
    }
}

/// Operands that are new at every use as far as the compiler knows, so that it reuses no product
/// and takes no common factor out of a sum.
struct Registers<I: Isa> {
    x: VecI<I>,
    scale: VecI<I>,
}

/// The products of one sub-block for every chain, added to `totals`.
#[inline(always)]
fn sub_block<I: Isa, F: Format>(
    isa: I,
    w: VecI<I>,
    registers: &mut Registers<I>,
    totals: &mut [VecI<I>; TOTALS],
) {
    let v = isa.v();
    let depth = chain_depth::<I, F>();
    for _ in 0..F::SUB / 4 / depth {
        let mut part = [v.splat_i32(0); CHAINS];
        for link in 0..depth {
            for part in &mut part {
                registers.x = isa.opaque(registers.x);
                *part = if signed::<I, F>() {
                    isa.dot_signed(w, registers.x)
                } else if link == 0 {
                    isa.dot(w, registers.x)
                } else {
                    isa.dot_add(*part, w, registers.x)
                };
            }
        }
        for (chain, part) in part.into_iter().enumerate() {
            // A type without integer scales widens by a constant one, which may cost nothing.
            if F::SUPER {
                registers.scale = isa.opaque(registers.scale);
            }
            let total = &mut totals[chain % TOTALS];
            *total = v.add_i32(*total, isa.widen(part, registers.scale));
        }
    }
}

struct FloatLoop(usize);

impl Op for FloatLoop {
    type Output = [i32; 8];

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> [i32; 8] {
        let v = isa.v();
        // Factors of 1 and 1 and sums from 0 on would stop growing at 2^24; these alternate.
        let one = v.to_f32(isa.opaque(v.splat_i32(1)));
        let minus = v.to_f32(isa.opaque(v.splat_i32(-1)));
        let mut sums = [one; CHAINS];
        for _ in 0..self.0 {
            for _ in 0..SUPER_WEIGHTS / 2 {
                for sum in &mut sums {
                    *sum = v.fma(*sum, minus, one);
                }
                for sum in &mut sums {
                    *sum = v.fma(*sum, one, minus);
                }
            }
        }
        let total = sums.into_iter().fold(v.splat(0.0), |total, sum| v.add(total, sum));
        let mut lanes = [0; 8];
        v.store_i32(&mut lanes, v.to_i32(total));
        lanes
    }
}
