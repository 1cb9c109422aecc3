//! Values of arguments: counts and types, separated by commas.

use crate::cli::args;
use argh::FromArgValue;
use dllm_rt::synth::Types;

/// Items of a list at most: each is measured with each of the others.
const ITEMS_MAX: usize = 64;
/// Characters shown of an item that cannot be read.
const SHOWN_CHARS_MAX: usize = 40;

/// Numbers from 1 on, in the order given, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts(pub Vec<usize>);

impl FromArgValue for Counts {
    fn from_arg_value(value: &str) -> Result<Counts, String> {
        let count = |item: &str| match item.parse::<usize>() {
            Ok(0) => Err("is 0; give at least 1".to_owned()),
            Ok(count) => Ok(count),
            Err(_) => Err("is no number; write `1,2`".to_owned()),
        };
        list(value, count).map(Counts)
    }
}

/// Types of weights, in the order given, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeList(pub Vec<Types>);

impl FromArgValue for TypeList {
    fn from_arg_value(value: &str) -> Result<TypeList, String> {
        let types = |item: &str| match item.parse::<Types>() {
            Ok(types) => Ok(types),
            Err(fault) => Err(format!("is none: {fault}")),
        };
        list(value, types).map(TypeList)
    }
}

fn list<T: PartialEq>(
    value: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut items = Vec::new();
    for (at, item) in value.split(',').map(str::trim).enumerate() {
        if at == ITEMS_MAX {
            return Err(format!("has more than {ITEMS_MAX} items"));
        }
        let shown: String = item.chars().take(SHOWN_CHARS_MAX).collect();
        let named = |why| format!("item {} (`{}`) {why}", at + 1, args::one_line(&shown));
        let item = parse(item).map_err(named)?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dllm_cpu::dtype::Dtype;

    #[test]
    fn lists_are_read_and_refused_by_item() {
        assert_eq!(Counts::from_arg_value("2, 1,2").unwrap().0, [2, 1]);
        for (bad, named) in
            [("", "item 1"), ("1,,2", "item 2"), ("1,0", "item 2 (`0`) is 0"), ("x", "(`x`)")]
        {
            let said = Counts::from_arg_value(bad).unwrap_err();
            assert!(said.contains(named), "{bad}: {said}");
        }
        let types = TypeList::from_arg_value("q4_k_m,Q8_0").unwrap().0;
        assert_eq!(types, [Types::Q4KM, Types::One(Dtype::Q8_0)]);
        let said = TypeList::from_arg_value("Q4_K,Q9_K").unwrap_err();
        assert!(said.contains("item 2 (`Q9_K`)") && said.contains("Q6_K"), "{said}");
        assert!(Counts::from_arg_value(&"1,".repeat(70)).is_err());
    }
}
