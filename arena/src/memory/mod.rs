//! Where things lie and who may touch them: layout, the region, and its parts once it is sealed.

pub mod access;
pub mod layout;
pub mod region;
pub mod table;
pub mod view;
