//! Rows side by side to values of all rows side by side: the step of packing that moves the bytes.
//!
//! On x86-64 with SSE2, which every such CPU has; the loops that say what it does are used
//! elsewhere and are what the tests compare with.

use crate::dtype::GROUP_ROWS;

/// Most sub-blocks with a scale of their own.
pub const SUBS_MAX: usize = 16;

/// Bytes of a word of every row.
const PLACE_BYTES: usize = GROUP_ROWS * size_of::<u32>();

/// Place `i` of `out` gets `rows[r][i]` of every row `r`, little-endian: as many as `out` takes, a
/// multiple of 4.
#[inline(always)]
pub fn words<const N: usize>(rows: &[[u32; N]; GROUP_ROWS], out: &mut [[u8; PLACE_BYTES]]) {
    debug_assert!(out.len() <= N && out.len().is_multiple_of(4));
    #[cfg(target_arch = "x86_64")]
    x86_64::words(rows, out);
    #[cfg(not(target_arch = "x86_64"))]
    words_by_loop(rows, out);
}

/// `out[s][r] = rows[r][s]` for the first `subs` sub-blocks.
#[inline(always)]
pub fn bytes(rows: &[[u8; SUBS_MAX]; GROUP_ROWS], subs: usize, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    let all = x86_64::bytes(rows);
    #[cfg(not(target_arch = "x86_64"))]
    let all = bytes_by_loop(rows);
    out[..subs * GROUP_ROWS].copy_from_slice(all[..subs].as_flattened());
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn words_by_loop<const N: usize>(rows: &[[u32; N]; GROUP_ROWS], out: &mut [[u8; PLACE_BYTES]]) {
    for (i, place) in out.iter_mut().enumerate() {
        for (word, row) in place.as_chunks_mut().0.iter_mut().zip(rows) {
            *word = row[i].to_le_bytes();
        }
    }
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn bytes_by_loop(rows: &[[u8; SUBS_MAX]; GROUP_ROWS]) -> [[u8; GROUP_ROWS]; SUBS_MAX] {
    let mut out = [[0; GROUP_ROWS]; SUBS_MAX];
    for (r, row) in rows.iter().enumerate() {
        for (s, &byte) in row.iter().enumerate() {
            out[s][r] = byte;
        }
    }
    out
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use crate::dtype::GROUP_ROWS;
    use crate::pack::interleave::{PLACE_BYTES, SUBS_MAX};
    use core::arch::x86_64::*;

    #[inline(always)]
    pub fn words<const N: usize>(rows: &[[u32; N]; GROUP_ROWS], out: &mut [[u8; PLACE_BYTES]]) {
        for (quad, places) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            for half in 0..2 {
                let from = |r: usize| four_words(&rows[4 * half + r].as_chunks().0[quad]);
                let columns = transpose([from(0), from(1), from(2), from(3)]);
                for (place, column) in places.iter_mut().zip(columns) {
                    store(&mut place.as_chunks_mut().0[half], column);
                }
            }
        }
    }

    #[inline(always)]
    pub fn bytes(rows: &[[u8; SUBS_MAX]; GROUP_ROWS]) -> [[u8; GROUP_ROWS]; SUBS_MAX] {
        // What meets first ends up furthest apart: rows 0 and 4, then 2 and 6 between them, ...
        let zip_rows = |i: usize, j: usize| zip(sixteen_bytes(&rows[i]), sixteen_bytes(&rows[j]));
        let (a, b) = (zip_rows(0, 4), zip_rows(2, 6));
        let (c, d) = (zip_rows(1, 5), zip_rows(3, 7));
        let mut out = [[0; GROUP_ROWS]; SUBS_MAX];
        let places = out.as_flattened_mut().as_chunks_mut::<16>().0;
        for (part, places) in places.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let (half, quarter) = (part / 2, part % 2);
            let even = zip(a[half], b[half])[quarter];
            let odd = zip(c[half], d[half])[quarter];
            for (place, x) in places.iter_mut().zip(zip(even, odd)) {
                store(place, x);
            }
        }
        out
    }

    /// The low halves of `a` and `b` byte by byte in turn, then the high ones.
    #[inline(always)]
    fn zip(a: __m128i, b: __m128i) -> [__m128i; 2] {
        // SAFETY: SSE2 is part of x86-64.
        unsafe { [_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)] }
    }

    /// Four vectors of four words, transposed.
    #[inline(always)]
    fn transpose([a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
        // SAFETY: SSE2 is part of x86-64.
        unsafe {
            let (ab_low, cd_low) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
            [
                _mm_unpacklo_epi64(ab_low, cd_low),
                _mm_unpackhi_epi64(ab_low, cd_low),
                _mm_unpacklo_epi64(ab_high, cd_high),
                _mm_unpackhi_epi64(ab_high, cd_high),
            ]
        }
    }

    #[inline(always)]
    fn four_words(from: &[u32; 4]) -> __m128i {
        // SAFETY: SSE2 is part of x86-64; `from` is 16 bytes that may be read.
        unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn sixteen_bytes(from: &[u8; 16]) -> __m128i {
        // SAFETY: SSE2 is part of x86-64; `from` is 16 bytes that may be read.
        unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(to: &mut [u8; 16], x: __m128i) {
        // SAFETY: SSE2 is part of x86-64; `to` is 16 bytes that may be written.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), x) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_interleaving_agree() {
        let rows: [[u32; 64]; 8] =
            std::array::from_fn(|r| std::array::from_fn(|i| (r * 0x10203 + i * 0x1010101) as u32));
        for places in [0, 4, 32, 64] {
            let (mut got, mut want) =
                (vec![[1; PLACE_BYTES]; places], vec![[2; PLACE_BYTES]; places]);
            words(&rows, &mut got);
            words_by_loop(&rows, &mut want);
            assert_eq!(got, want);
        }
        let rows = std::array::from_fn(|r| std::array::from_fn(|s| (r * 16 + s) as u8));
        for subs in [8, 16] {
            let mut got = [0xa5; 130];
            bytes(&rows, subs, &mut got);
            assert_eq!(got[..8 * subs], *bytes_by_loop(&rows)[..subs].as_flattened());
            assert!(got[8 * subs..].iter().all(|&byte| byte == 0xa5));
        }
    }
}
