//! The registers-only loops do the work that they are counted for.

use dllm_cpu::Kernels;
use dllm_cpu::dtype::{Dtype, SUPER_WEIGHTS};
use dllm_cpu::peak::peak;

#[test]
fn every_multiply_add_of_a_peak_loop_is_done() {
    for kernels in Kernels::all() {
        for dtype in Dtype::ALL {
            for rounds in [0, 1, 3] {
                let peak = peak(kernels, dtype, rounds);
                let vectors = rounds as u64 * 10;
                assert_eq!(peak.macs, vectors * 8 * SUPER_WEIGHTS as u64);
                // Ones times ones; the float loop comes back to one a lane.
                let sum = if dtype.is_float() { 80 } else { peak.macs };
                assert_eq!(peak.check, sum, "{dtype} {} {rounds}", kernels.name());
            }
        }
    }
}
