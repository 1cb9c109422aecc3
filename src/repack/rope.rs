//! The rotary tables.

use super::tensors::read_vector;
use crate::gguf::Gguf;
use crate::model::{Fault, Model};

/// The frequencies from which both tables are made.
pub struct Table {
    frequencies: Vec<f64>,
}

impl Table {
    /// `theta^(-2 i / dimensions) / factor[i]` for each pair of dimensions, in f64.
    ///
    /// # Errors
    /// A factor in the file that is not positive.
    pub fn new(gguf: &Gguf, model: &Model) -> Result<Table, Fault> {
        let rope = &model.config.rope;
        let factors = factors(gguf, model, rope.dimensions / 2)?;
        let frequency = |(i, factor): (usize, &f32)| {
            let exponent = -2.0 * i as f64 / rope.dimensions as f64;
            libm::pow(f64::from(rope.theta), exponent) / f64::from(*factor)
        };
        Ok(Table { frequencies: factors.iter().enumerate().map(frequency).collect() })
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.frequencies.len() * size_of::<f32>()
    }

    /// Rows of `f(position * frequency)`, from position `first` on: as many as `to` takes.
    pub fn fill(&self, f: fn(f64) -> f64, first: usize, to: &mut [f32]) {
        let rows = to.chunks_exact_mut(self.frequencies.len().max(1));
        for (position, row) in (first..).zip(rows) {
            for (value, frequency) in row.iter_mut().zip(&self.frequencies) {
                *value = f(position as f64 * frequency) as f32;
            }
        }
    }
}

/// What the file divides the frequencies by; ones where it does not say.
fn factors(gguf: &Gguf, model: &Model, half: usize) -> Result<Vec<f32>, Fault> {
    let mut factors = vec![1.0f32; half];
    let Some(vector) = model.rope_factors else { return Ok(factors) };
    read_vector(gguf, vector, 0, &mut factors)?;
    match factors.iter().position(|factor| *factor <= 0.0) {
        None => Ok(factors),
        Some(index) => Err(Fault::Value {
            key: format!("{}[{index}]", gguf.tensors()[vector.tensor].name),
            found: factors[index].to_string(),
            need: "positive".into(),
        }),
    }
}
