//! Denoising: which positions want a token at a step, and which of the answers are committed.
//!
//! A run is: [`Canvas::new`], then until [`Canvas::is_done`]: [`Canvas::plan_step`], one forward
//! pass over the rows [`Canvas::rows`] of [`Canvas::ids`], which may have grown (a second over
//! [`Canvas::unconditional_ids`] under guidance), one [`choose`](crate::sample::choose) a wanted
//! position with [`Canvas::rule`], and [`Canvas::commit`]. All memory is taken by `Canvas::new`.
mod canvas;
mod fault;
mod kept;
mod pick;
mod preset;
mod schedule;
mod shares;

pub use canvas::{Canvas, Committed, ModelFacts, Progress, Wanted};
pub use fault::Fault;
pub use preset::Preset;
pub use schedule::{
    CANVAS_MAX, CFG_SCALE_MAX, Cache, FACTOR_MAX, Pace, STEPS_MAX, Schedule, Settings,
    TEMPERATURE_MAX,
};
