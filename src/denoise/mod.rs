//! Denoising: which positions are candidates at a step, and which of the choices are committed.
//!
//! A run is: [`Canvas::new`], then until [`Canvas::is_done`]: [`Canvas::plan_step`], one forward
//! pass over [`Canvas::ids`], which may have grown (a second over [`Canvas::unconditional_ids`]
//! under guidance), one [`choose`](crate::sample::choose) a candidate with [`Canvas::rule`], and
//! [`Canvas::commit`]. All memory is taken by `Canvas::new`.

mod canvas;
mod error;
mod parameters;
mod policy;
mod request;
mod schedule;

pub use canvas::{Canvas, Committed, Progress, TokenFacts};
pub use error::Error;
pub use parameters::{
    CANVAS_MAX, CFG_SCALE_MAX, FACTOR_MAX, GenerationParameters, STEPS_MAX, TEMPERATURE_MAX, Values,
};
pub use policy::{Candidate, Policy};
pub use request::{Cache, Preset, RequestParameters};
