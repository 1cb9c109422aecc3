//! Text in, text out: all that a command line, a server or an embedder needs, written once.
//!
//! ```text
//! Model ── prepare(&Request) ──▶ PreparedRequest ── limits ──▶ Engine (Model::load)
//!                                      │                          │
//!                                      └── Generation::start ─────┘  step … alone or in a Batch
//!                                                 │
//!                              Model::answer ◀────┘  text so far, finish reason, usage
//! ```
//!
//! A [`Model`] only reads, so any thread may prepare requests and read answers while another steps
//! the engine. Stepping allocates nothing.

mod answer;
mod generation;
mod model;
mod prompt;
mod request;

pub use answer::{Answer, FilledHole, Usage};
pub use generation::{Batch, FinishReason, Generation};
pub use model::Model;
pub use prompt::Prompt;
pub use request::{PreparedRequest, Request, limits};
