//! Refuses templates that could make a value that holds itself, before they run.
//!
//! The engine writes, compares and searches values by recursion without an end. The only values
//! that change after they are made are those of `namespace()`: as long as one is only ever reached
//! by the name that it was made under, and then only for its attributes, it is in no other value.
//! A macro's parameter is such a name too, where the macro is called with a namespace.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use minijinja::machinery::{Token, WhitespaceConfig, tokenize};
use minijinja::syntax::SyntaxConfig;

/// The function that makes namespaces.
const MAKER: &str = "namespace";

/// Says what is refused and why, if something is. A source that does not lex passes: the engine
/// says better what is wrong with it.
pub(super) fn screen(source: &str) -> Result<(), String> {
    let lexed = tokenize(source, false, SyntaxConfig, WhitespaceConfig::default());
    let Ok(spanned) = lexed.collect::<Result<Vec<_>, _>>() else { return Ok(()) };
    let (tokens, lines): (Vec<_>, Vec<_>) =
        spanned.into_iter().map(|(token, span)| (token, span.start_line)).unzip();
    let mut made: HashSet<&str> = (0..tokens.len()).filter_map(|at| made_at(&tokens, at)).collect();
    let passed = passed(&tokens, &mut made);
    for (at, (token, line)) in tokens.iter().zip(lines).enumerate() {
        match token {
            Token::Ident(_) if passed.contains(&at) || is_label(&tokens, at) => {}
            Token::Ident(MAKER) if at < 3 || made_at(&tokens, at - 2).is_none() => {
                return Err(format!(
                    "line {line}: namespace() is refused but as {{% set NAME = namespace(...) %}}: \
                     elsewhere it could come to hold itself"
                ));
            }
            Token::Ident(name) if made.contains(name) && !is_attribute_use(&tokens, at) => {
                return Err(format!(
                    "line {line}: the namespace {name} is refused but as {name}.ATTRIBUTE or as \
                     an argument of a macro: elsewhere it could come to hold itself"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Where namespaces are handed to macros, and where the parameters that take them are declared.
/// These become names of namespaces.
fn passed<'a>(tokens: &[Token<'a>], made: &mut HashSet<&'a str>) -> HashSet<usize> {
    let macros = macros(tokens);
    let mut passed = HashSet::new();
    let calls: Vec<(usize, &Vec<(&str, usize)>)> = (0..tokens.len())
        .filter(|&at| !is_macro_name(tokens, at))
        .filter_map(|at| match (&tokens[at], tokens.get(at + 1)) {
            (Token::Ident(name), Some(Token::ParenOpen)) => Some((at + 2, macros.get(name)?)),
            _ => None,
        })
        .collect();
    loop {
        let count = passed.len();
        for (start, params) in &calls {
            for (index, argument) in arguments(tokens, *start).into_iter().enumerate() {
                let (param, at) = match &tokens[argument.clone()] {
                    [Token::Ident(name)] if made.contains(name) => {
                        (params.get(index), argument.start)
                    }
                    [Token::Ident(label), Token::Assign, Token::Ident(name)]
                        if made.contains(name) =>
                    {
                        (params.iter().find(|(param, _)| param == label), argument.start + 2)
                    }
                    _ => continue,
                };
                let Some((param, declared)) = param else { continue };
                made.insert(*param);
                passed.extend([at, *declared]);
            }
        }
        if passed.len() == count {
            return passed;
        }
    }
}

/// The parameters of each macro and where they are declared, for the macros whose names stand for
/// nothing else.
fn macros<'a>(tokens: &[Token<'a>]) -> HashMap<&'a str, Vec<(&'a str, usize)>> {
    let mut macros: HashMap<&str, Vec<(&str, usize)>> = HashMap::new();
    let mut other: HashSet<&str> = HashSet::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Ident(name) = token else { continue };
        let called = matches!(tokens.get(at + 1), Some(Token::ParenOpen));
        if called && is_macro_name(tokens, at) {
            let params = arguments(tokens, at + 2).into_iter().filter_map(|param| {
                match &tokens[param.clone()] {
                    [Token::Ident(name)] | [Token::Ident(name), Token::Assign, ..] => {
                        Some((*name, param.start))
                    }
                    _ => None,
                }
            });
            if macros.insert(name, params.collect()).is_some() {
                other.insert(name);
            }
        } else if !called && !is_label(tokens, at) {
            other.insert(name);
        }
    }
    macros.retain(|name, _| !other.contains(name));
    macros
}

/// Whether token `at` is the name in `macro NAME`.
fn is_macro_name(tokens: &[Token<'_>], at: usize) -> bool {
    at > 0 && matches!(tokens[at - 1], Token::Ident("macro"))
}

/// What stands between the commas up to the parenthesis that closes the one before `start`.
fn arguments(tokens: &[Token<'_>], start: usize) -> Vec<Range<usize>> {
    let (mut depth, mut first) = (0_usize, start);
    let mut arguments = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => depth += 1,
            Token::ParenClose | Token::BracketClose | Token::BraceClose if depth > 0 => depth -= 1,
            Token::ParenClose => {
                arguments.push(first..at);
                return arguments;
            }
            Token::Comma if depth == 0 => {
                arguments.push(first..at);
                first = at + 1;
            }
            Token::BlockEnd | Token::VariableEnd => return Vec::new(),
            _ => {}
        }
    }
    Vec::new()
}

/// The name in `{% set NAME = namespace(...) %}` where that is token `at`.
fn made_at<'a>(tokens: &[Token<'a>], at: usize) -> Option<&'a str> {
    let statement = tokens.get(at.checked_sub(2)?..)?;
    match statement {
        [
            Token::BlockStart,
            Token::Ident("set"),
            Token::Ident(name),
            Token::Assign,
            Token::Ident(MAKER),
            Token::ParenOpen,
            rest @ ..,
        ] if ends_after_call(rest) => Some(name),
        _ => None,
    }
}

/// Whether the parenthesis that is open is the statement's last.
fn ends_after_call(tokens: &[Token<'_>]) -> bool {
    let mut depth = 1_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::ParenOpen => depth += 1,
            Token::ParenClose => depth -= 1,
            Token::BlockEnd => return false,
            _ => {}
        }
        if depth == 0 {
            return matches!(tokens.get(at + 1), Some(Token::BlockEnd));
        }
    }
    false
}

/// Whether the identifier names no variable that is read: an attribute or an argument.
fn is_label(tokens: &[Token<'_>], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| tokens.get(before));
    let argument = matches!(before, Some(Token::ParenOpen | Token::Comma));
    matches!(before, Some(Token::Dot))
        || argument && matches!(tokens.get(at + 1), Some(Token::Assign))
}

/// Whether a namespace's name stands where it does not get away: before an attribute that is not
/// called (its methods give views of it), or where it is made or another value gets the name.
fn is_attribute_use(tokens: &[Token<'_>], at: usize) -> bool {
    let attribute = matches!(tokens.get(at + 1..), Some([Token::Dot, Token::Ident(_), ..]));
    let called = matches!(tokens.get(at + 3), Some(Token::ParenOpen));
    let before = at.checked_sub(2).and_then(|before| tokens.get(before..at));
    let set = matches!(before, Some([Token::BlockStart, Token::Ident("set")]))
        && matches!(tokens.get(at + 1), Some(Token::Assign));
    attribute && !called || set
}
