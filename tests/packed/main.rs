//! Packed weights kept in a folder: the same bits with and without, and nothing wrong is ever used.

#[path = "../common/models.rs"]
mod models;

mod damage;
mod same;
mod stale;
mod support;
mod writers;
