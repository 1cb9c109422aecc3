//! The choice of an instruction set: once, at load, from what the CPU has.
//!
//! An operator is a plain struct of its arguments with one generic body ([`Op`]). [`Kernels`]
//! holds a proof of an instruction set; [`Kernels::run`] enters the one shim that carries the
//! matching target features, into which the body is inlined.

#[cfg(target_arch = "x86_64")]
use crate::isa::{Avx2, Avx512Vnni, AvxVnni};
use crate::isa::{Isa, Scalar};

/// An operator: its arguments, and one body for every instruction set.
pub trait Op {
    /// What it returns.
    type Output;
    /// The body. Implementations are `#[inline(always)]`, so that it takes on the features of the
    /// shim that it is called from.
    fn run<I: Isa>(self, isa: I) -> Self::Output;
}

/// The kernels of one instruction set that this CPU has.
#[derive(Clone, Copy, Debug)]
pub enum Kernels {
    /// Any CPU.
    Scalar(Scalar),
    /// AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-VNNI, as on recent client CPUs.
    #[cfg(target_arch = "x86_64")]
    AvxVnni(AvxVnni),
    /// AVX512-VNNI on 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni(Avx512Vnni),
}

/// Every name that [`Kernels::by_name`] knows, slowest first.
#[cfg(target_arch = "x86_64")]
pub const NAMES: &[&str] = &[Scalar::NAME, Avx2::NAME, AvxVnni::NAME, Avx512Vnni::NAME];
/// Every name that [`Kernels::by_name`] knows.
#[cfg(not(target_arch = "x86_64"))]
pub const NAMES: &[&str] = &[Scalar::NAME];

impl Kernels {
    /// All that this CPU can run, slowest first; scalar is always the first.
    pub fn all() -> impl Iterator<Item = Kernels> {
        NAMES.iter().filter_map(|name| Kernels::by_name(name))
    }

    /// The fastest that this CPU can run.
    pub fn best() -> Option<Kernels> {
        Kernels::all().last()
    }

    /// The one of that name; `None` where the CPU lacks it or the name is unknown.
    pub fn by_name(name: &str) -> Option<Kernels> {
        match name {
            Scalar::NAME => Scalar::new().map(Kernels::Scalar),
            #[cfg(target_arch = "x86_64")]
            Avx2::NAME => Avx2::new().map(Kernels::Avx2),
            #[cfg(target_arch = "x86_64")]
            AvxVnni::NAME => AvxVnni::new().map(Kernels::AvxVnni),
            #[cfg(target_arch = "x86_64")]
            Avx512Vnni::NAME => Avx512Vnni::new().map(Kernels::Avx512Vnni),
            _ => None,
        }
    }

    /// As options and reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Kernels::Scalar(_) => Scalar::NAME,
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx2(_) => Avx2::NAME,
            #[cfg(target_arch = "x86_64")]
            Kernels::AvxVnni(_) => AvxVnni::NAME,
            #[cfg(target_arch = "x86_64")]
            Kernels::Avx512Vnni(_) => Avx512Vnni::NAME,
        }
    }

    /// Runs an operator.
    #[inline]
    pub fn run<O: Op>(self, op: O) -> O::Output {
        match self {
            Kernels::Scalar(isa) => op.run(isa),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx2` exists only where the CPU has the shim's features.
            Kernels::Avx2(isa) => unsafe { run_avx2(isa, op) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `AvxVnni` exists only where the CPU has the shim's features.
            Kernels::AvxVnni(isa) => unsafe { run_avxvnni(isa, op) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: an `Avx512Vnni` exists only where the CPU has the shim's features.
            Kernels::Avx512Vnni(isa) => unsafe { run_avx512vnni(isa, op) },
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<O: Op>(isa: Avx2, op: O) -> O::Output {
    op.run(isa)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avxvnni")]
fn run_avxvnni<O: Op>(isa: AvxVnni, op: O) -> O::Output {
    op.run(isa)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512vnni,avx512vl")]
fn run_avx512vnni<O: Op>(isa: Avx512Vnni, op: O) -> O::Output {
    op.run(isa)
}
