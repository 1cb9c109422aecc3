//! The tables of results: blocks between marker comments of the page beside the records.

use crate::Error;
use crate::savings::Savings;
use crate::scores::Record;
use argh::FromArgs;
use std::fs;
use std::path::{Path, PathBuf};

/// The page in the folder of records.
const PAGE: &str = "README.md";

/// Writes this program's tables in the page of results from the records beside it.
#[derive(FromArgs)]
#[argh(subcommand, name = "tables")]
pub struct Tables {
    /// the folder of the records and their page (default: benches/results)
    #[argh(option, arg_name = "folder", default = "PathBuf::from(\"benches/results\")")]
    pub folder: PathBuf,
    /// change nothing, fail if something would change
    #[argh(switch)]
    pub check: bool,
}

impl Tables {
    /// Puts each block between the markers of its name, or compares.
    pub fn put(&self, blocks: &[(&str, String)]) -> Result<(), Error> {
        let path = self.folder.join(PAGE);
        let old = fs::read_to_string(&path).map_err(Error::io(&path))?;
        let put = |text: String, (name, block): &(&str, String)| between(&text, name, block);
        let new = blocks.iter().try_fold(old.clone(), put)?;
        match (new == old, self.check) {
            (true, _) => Ok(()),
            (false, false) => fs::write(&path, new).map_err(Error::io(&path)),
            (false, true) => {
                let text = format!("{} is not what `tables` writes", path.display());
                Err(Error::Record(text))
            }
        }
    }
}

/// The blocks of this program's own records in `folder`, with their names.
pub fn blocks(folder: &Path) -> Result<Vec<(&'static str, String)>, Error> {
    let (eval, savings) = (Record::read(folder)?.block(), Savings::read(folder)?.block());
    Ok(vec![("eval", eval), ("savings", savings)])
}

/// `page` with `block` between the markers of `name`, which must be one pair in order.
pub fn between(page: &str, name: &str, block: &str) -> Result<String, Error> {
    let [begin, end] = ["begin", "end"].map(|word| format!("<!-- {name}:{word} -->"));
    let pair = || Error::Record(format!("the markers of {name} are not one pair"));
    let (before, rest) = page.split_once(&begin).ok_or_else(pair)?;
    let (_, after) = rest.split_once(&end).ok_or_else(pair)?;
    match before.contains(&end) || after.contains(&begin) || after.contains(&end) {
        true => Err(pair()),
        false => Ok([before, &begin, "\n", block, &end, after].concat()),
    }
}
