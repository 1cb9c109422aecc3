//! Refuses templates that could make a value that holds itself, before they run.
//!
//! The engine writes, compares and searches values by recursion without an end. The only values
//! that change after they are made are those of `namespace()`: as long as one is only ever reached
//! by the name that it was made under, and then only for its attributes, it is in no other value.

use std::collections::HashSet;

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
    let made: HashSet<&str> = (0..tokens.len()).filter_map(|at| made_at(&tokens, at)).collect();
    for (at, (token, line)) in tokens.iter().zip(lines).enumerate() {
        match token {
            Token::Mul => {
                return Err(format!(
                    "line {line}: the operator * is refused: it could take all memory"
                ));
            }
            Token::Ident(_) if is_label(&tokens, at) => {}
            Token::Ident(MAKER) if at < 3 || made_at(&tokens, at - 2).is_none() => {
                return Err(format!(
                    "line {line}: namespace() is refused but as {{% set NAME = namespace(...) %}}: \
                     elsewhere it could come to hold itself"
                ));
            }
            Token::Ident(name) if made.contains(name) && !is_attribute_use(&tokens, at) => {
                return Err(format!(
                    "line {line}: the namespace {name} is refused but as {name}.ATTRIBUTE: \
                     elsewhere it could come to hold itself"
                ));
            }
            _ => {}
        }
    }
    Ok(())
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
/// called (its methods give views of it), or where it is made.
fn is_attribute_use(tokens: &[Token<'_>], at: usize) -> bool {
    let attribute = matches!(tokens.get(at + 1..), Some([Token::Dot, Token::Ident(_), ..]));
    let called = matches!(tokens.get(at + 3), Some(Token::ParenOpen));
    attribute && !called || made_at(tokens, at).is_some()
}
