//! `plan`: stub
use crate::cli::End;
use crate::cli::failure::Failure;
use argh::FromArgs;
/// p
#[derive(FromArgs, Debug)]
#[argh(subcommand, name = "plan")]
pub struct PlanCommand {}
pub fn run(_c: &PlanCommand) -> Result<End, Failure> {
    Ok(End::Done)
}
