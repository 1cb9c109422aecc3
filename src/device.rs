//! Where the operator list runs.

use std::fmt;
use std::str::FromStr;

/// A device. The list and the plan are the same on any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The CPU.
    Cpu,
}

/// A device that this build cannot use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "cuda" => write!(f, "device `cuda` is not part of this version: use `cpu` or `auto`"),
            other => write!(f, "device `{other}` is unknown: use `cpu` or `auto`"),
        }
    }
}

impl std::error::Error for Unavailable {}

impl FromStr for Device {
    type Err = Unavailable;

    /// `cpu` or `auto`.
    fn from_str(name: &str) -> Result<Device, Unavailable> {
        match name {
            "cpu" | "auto" => Ok(Device::Cpu),
            other => Err(Unavailable(other.to_owned())),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cpu")
    }
}
