//! One matrix alone: panels of 16 rows that threads claim, as in a step, against its peak.

use super::subject::Matrix;
use crossbeam_utils::{Backoff, CachePadded};
use dllm_arena::{Region, ReserveError, Span};
use dllm_cpu::Kernels;
use dllm_cpu::dtype::{Dtype, PANEL_ROWS, SUPER_WEIGHTS};
use dllm_cpu::gemm::{
    ActivationKind, Activations, CODE_WORDS, GemmPanelF32, SUM_WORDS, activation_kind,
    multiply_panel,
};
use dllm_cpu::ops::{Quantize32, Quantize256};
use dllm_cpu::pack::{pack_panel, panel_bytes};
use dllm_cpu::peak::peak;
use dllm_rt::backend::cpu::threads::cpus;
use dllm_rt::synth::fill_rows;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// Seconds that a measurement takes at least: what a thread that wakes late costs is then nothing.
const SECONDS_MIN: f64 = 0.02;
/// Seconds that the loop over registers takes at most beside a longer matrix.
const PEAK_SECONDS_MAX: f64 = 0.2;
/// Rounds of that loop to begin with, of some microseconds.
const ROUNDS_MIN: usize = 16;
/// Times that a small matrix is multiplied in one measurement at most.
const PASSES_MAX: usize = 1 << 16;

/// Where and how it is measured.
#[derive(Clone, Debug)]
pub struct Setup {
    pub kernels: Kernels,
    pub pins: Vec<usize>,
    pub memory: dllm_arena::Options,
}

/// Multiply-adds a second of a matrix, and of the loop over registers: the mean of right before and
/// right after.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub gemm: f64,
    pub peak: f64,
}

/// A packed matrix of random weights.
pub struct Weights<'a> {
    setup: &'a Setup,
    matrix: Matrix,
    region: Region,
    panel_bytes: usize,
}

impl<'a> Weights<'a> {
    /// Makes and packs it.
    pub fn new(setup: &'a Setup, matrix: Matrix) -> Result<Weights<'a>, ReserveError> {
        let Matrix { dtype, rows, cols } = matrix;
        let (panels, panel_bytes) = (rows.div_ceil(PANEL_ROWS), panel_bytes(dtype, cols));
        let mut region = Region::reserve(panels.saturating_mul(panel_bytes), &setup.memory)?;
        let bytes = panels * panel_bytes;
        // A shape or file was checked to have whole blocks.
        let row_bytes = dtype.row_bytes(cols).unwrap_or(0);
        let mut file = vec![0; PANEL_ROWS * row_bytes];
        let all = region.span_mut::<u8>(Span { offset: 0, bytes });
        for (panel, to) in all.chunks_exact_mut(panel_bytes).enumerate() {
            fill_rows(dtype, cols, panel as u64, &mut file);
            let count = PANEL_ROWS.min(rows - panel * PANEL_ROWS);
            let mut present = [&file[..0]; PANEL_ROWS];
            for (row, bytes) in present.iter_mut().zip(file.chunks_exact(row_bytes)) {
                *row = bytes;
            }
            pack_panel(dtype, &present[..count], cols, to);
        }
        Ok(Weights { setup, matrix, region, panel_bytes })
    }

    /// Multiplies `tokens` rows on `threads` threads, `reps` times, in turn with the loop over
    /// registers; `done` is called after each pair.
    pub fn measure(
        &self,
        tokens: usize,
        threads: usize,
        reps: usize,
        mut done: impl FnMut(),
    ) -> Result<Vec<Pair>, ReserveError> {
        let inputs = Inputs::new(self.setup, self.matrix, tokens)?;
        let tile_bytes = tokens * PANEL_ROWS * size_of::<f32>();
        let mut tiles = Region::reserve(threads.saturating_mul(tile_bytes), &self.setup.memory)?;
        let spans: Vec<Span> = (0..threads)
            .map(|thread| Span { offset: thread * tile_bytes, bytes: tile_bytes })
            .collect();
        let mut tiles: Vec<&mut [f32]> =
            tiles.split_mut(&spans).into_iter().map(bytemuck::cast_slice_mut).collect();
        let warm = self.seconds(&inputs, &mut tiles, 1);
        let passes = ((SECONDS_MIN / warm).ceil() as usize).clamp(1, PASSES_MAX);
        let length = (warm * passes as f64).clamp(SECONDS_MIN, PEAK_SECONDS_MAX);
        let rounds = rounds(self.setup, self.matrix.dtype, length);
        let macs = passes as f64 * (self.matrix.rows * self.matrix.cols) as f64 * tokens as f64;
        let peak = || peak_speed(self.setup, self.matrix.dtype, threads, rounds);
        let mut before = peak();
        let pair = |_| {
            let gemm = macs / self.seconds(&inputs, &mut tiles, passes);
            let after = peak();
            let pair = Pair { gemm, peak: (before + after) / 2.0 };
            before = after;
            done();
            pair
        };
        Ok((0..reps).map(pair).collect())
    }

    /// Seconds for `passes` multiplications, shared by as many threads as there are `tiles`.
    fn seconds(&self, inputs: &Inputs, tiles: &mut [&mut [f32]], passes: usize) -> f64 {
        let panels = self.matrix.rows.div_ceil(PANEL_ROWS);
        let next = CachePadded::new(AtomicUsize::new(0));
        let next = &next;
        let job = |tile: &mut &mut [f32]| {
            loop {
                let item = next.fetch_add(1, Ordering::Relaxed);
                if item >= panels * passes {
                    break;
                }
                self.multiply(inputs, item % panels, tile);
            }
            black_box(tile);
        };
        let job = &job;
        pinned_seconds(&self.setup.pins, tiles.iter_mut().map(|tile| move || job(tile)))
    }

    fn multiply(&self, inputs: &Inputs, panel: usize, out: &mut [f32]) {
        let span = Span { offset: panel * self.panel_bytes, bytes: self.panel_bytes };
        let (kernels, dtype, tokens) = (self.setup.kernels, self.matrix.dtype, inputs.tokens);
        match inputs.activations() {
            Some(x) => multiply_panel(kernels, dtype, self.region.span(span), x, out),
            None => {
                let (panel, x) = (self.region.span(span), inputs.region.span(inputs.codes));
                kernels.run(GemmPanelF32 { panel, x, stride: self.matrix.cols, tokens, out });
            }
        }
    }
}

/// Random rows, in the form that a type's matrices multiply.
struct Inputs {
    region: Region,
    kind: ActivationKind,
    /// Codes; f32 rows for the float types.
    codes: Span,
    sums: Span,
    scales: Span,
    tokens: usize,
}

impl Inputs {
    fn new(setup: &Setup, matrix: Matrix, tokens: usize) -> Result<Inputs, ReserveError> {
        let kind = activation_kind(matrix.dtype);
        let cells = matrix.cols.div_ceil(SUPER_WEIGHTS).saturating_mul(tokens);
        let scales = match kind {
            ActivationKind::Float => return Inputs::float(setup, matrix.cols, tokens),
            ActivationKind::Per256 => 1,
            ActivationKind::Per32 => 8,
        };
        let mut end = 0usize;
        let mut span = |words: usize| {
            let bytes = cells.saturating_mul(words * size_of::<f32>());
            let offset = end.next_multiple_of(dllm_arena::ALIGN);
            end = offset.saturating_add(bytes);
            Span { offset, bytes }
        };
        let spans = [span(CODE_WORDS), span(SUM_WORDS), span(scales)];
        let mut region = Region::reserve(end, &setup.memory)?;
        quantize(setup.kernels, kind, matrix.cols, tokens, region.split_mut(&spans));
        let [codes, sums, scales] = spans;
        Ok(Inputs { region, kind, codes, sums, scales, tokens })
    }

    fn float(setup: &Setup, cols: usize, tokens: usize) -> Result<Inputs, ReserveError> {
        let bytes = cols.saturating_mul(tokens).saturating_mul(size_of::<f32>());
        let mut region = Region::reserve(bytes, &setup.memory)?;
        let codes = Span { offset: 0, bytes };
        let mut noise = Noise(7);
        region.span_mut::<f32>(codes).iter_mut().for_each(|x| *x = noise.next());
        let (kind, sums, scales) = (ActivationKind::Float, Span::default(), Span::default());
        Ok(Inputs { region, kind, codes, sums, scales, tokens })
    }

    /// `None` for the float types.
    fn activations(&self) -> Option<Activations<'_>> {
        (self.kind != ActivationKind::Float).then(|| Activations {
            codes: self.region.span(self.codes),
            sums: self.region.span(self.sums),
            scales: self.region.span(self.scales),
            tokens: self.tokens,
            capacity: self.tokens,
        })
    }
}

/// Fills codes, sums and scales from random rows.
fn quantize(
    kernels: Kernels,
    kind: ActivationKind,
    cols: usize,
    tokens: usize,
    parts: Vec<&mut [u8]>,
) {
    let Ok([codes, sums, scales]) = <[&mut [u8]; 3]>::try_from(parts) else { return };
    let (codes, sums): (&mut [i32], &mut [i32]) =
        (bytemuck::cast_slice_mut(codes), bytemuck::cast_slice_mut(sums));
    let scales: &mut [f32] = bytemuck::cast_slice_mut(scales);
    let cells = codes.chunks_exact_mut(CODE_WORDS).zip(sums.chunks_exact_mut(SUM_WORDS));
    let per_cell = if kind == ActivationKind::Per256 { 1 } else { 8 };
    let mut noise = Noise(7);
    let mut x = [0.0; SUPER_WEIGHTS];
    for (at, ((codes, sums), scales)) in cells.zip(scales.chunks_exact_mut(per_cell)).enumerate() {
        x.iter_mut().for_each(|x| *x = noise.next());
        // The last block of a row may be shorter.
        let x = &x[..SUPER_WEIGHTS.min(cols - at / tokens * SUPER_WEIGHTS)];
        match kind {
            ActivationKind::Per256 => scales[0] = kernels.run(Quantize256 { x, codes, sums }),
            _ => kernels.run(Quantize32 { x, codes, sums, scales }),
        }
    }
}

/// Numbers from -0.5 to 0.5, the same in every run (Knuth's MMIX generator).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    }
}

/// Rounds of the loop over registers that take about `seconds`.
fn rounds(setup: &Setup, dtype: Dtype, seconds: f64) -> usize {
    let mut rounds = ROUNDS_MIN;
    loop {
        let job = || {
            black_box(peak(setup.kernels, dtype, black_box(rounds)));
        };
        let taken = pinned_seconds(&setup.pins, [job]);
        // Long enough for the clock and for a core to speed up.
        if taken > SECONDS_MIN / 4.0 {
            return ((rounds as f64 * seconds / taken) as usize).max(1);
        }
        rounds *= 2;
    }
}

/// Multiply-adds a second of the loop over registers, of all threads together.
fn peak_speed(setup: &Setup, dtype: Dtype, threads: usize, rounds: usize) -> f64 {
    let macs = AtomicUsize::new(0);
    let job = || {
        let done = black_box(peak(setup.kernels, dtype, black_box(rounds)));
        macs.fetch_add(done.macs as usize, Ordering::Relaxed);
    };
    let seconds = pinned_seconds(&setup.pins, (0..threads).map(|_| job));
    macs.into_inner() as f64 / seconds
}

/// Runs each job on a thread of its own, pinned to the CPU of the same place in `pins` where there
/// is one. Returns the seconds from the first start to the last end.
///
/// # Panics
/// Where a job panics, or the system starts no more threads.
fn pinned_seconds<J: FnOnce() + Send>(pins: &[usize], jobs: impl IntoIterator<Item = J>) -> f64 {
    let jobs: Vec<J> = jobs.into_iter().collect();
    let missing = AtomicUsize::new(jobs.len());
    let missing = &missing;
    thread::scope(|scope| {
        let run = |(number, job): (usize, J)| {
            let pin = pins.get(number).copied();
            scope.spawn(move || {
                if let Some(cpu) = pin {
                    // Refused where the process may not use it; it is then where it is.
                    let _ = cpus::pin(cpu);
                }
                missing.fetch_sub(1, Ordering::AcqRel);
                let backoff = Backoff::new();
                while missing.load(Ordering::Acquire) > 0 {
                    backoff.snooze();
                }
                let start = Instant::now();
                job();
                (start, Instant::now())
            })
        };
        let threads: Vec<_> = jobs.into_iter().enumerate().map(run).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(times) => times,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let times: Vec<(Instant, Instant)> = joined.collect();
        let first = times.iter().map(|(start, _)| *start).min();
        let last = times.iter().map(|(_, end)| *end).max();
        match (first, last) {
            (Some(first), Some(last)) => last.duration_since(first).as_secs_f64(),
            _ => 0.0,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_last_thread_counts() {
        let sleep = |ms| move || thread::sleep(Duration::from_millis(ms));
        let seconds = pinned_seconds(&[], [sleep(1), sleep(60), sleep(1)]);
        assert!((0.06..10.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn more_threads_than_cpus_still_start() {
        let done = AtomicUsize::new(0);
        let job = || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        pinned_seconds(&[0], (0..33).map(|_| job));
        assert_eq!(done.into_inner(), 33);
    }
}
