//! The texts that a template's source holds, and the source with others in their place.

use std::ops::Range;

use minijinja::machinery::{Token, WhitespaceConfig, tokenize};
use minijinja::syntax::SyntaxConfig;

/// A string of an expression, or what stands between tags.
#[derive(Debug)]
pub(super) struct Literal {
    /// What it means.
    pub(super) text: String,
    /// Where it stands: without its quotes, but with them if it is escaped.
    range: Range<usize>,
    escaped: bool,
}

/// The literals of `source` in its order; none if it does not lex.
pub(super) fn literals(source: &str) -> Vec<Literal> {
    let lexed = tokenize(source, false, SyntaxConfig, WhitespaceConfig::default());
    let Ok(tokens) = lexed.collect::<Result<Vec<_>, _>>() else { return Vec::new() };
    let literal = |(token, span): (Token<'_>, minijinja::machinery::Span)| match token {
        Token::TemplateData(text) | Token::Str(text) => {
            let start = (text.as_ptr() as usize).checked_sub(source.as_ptr() as usize)?;
            let range = start..start + text.len();
            let inside = source.get(range.clone()) == Some(text);
            inside.then(|| Literal { text: text.into(), range, escaped: false })
        }
        Token::String(text) => {
            let range = span.start_offset as usize..span.end_offset as usize;
            Some(Literal { text: text.into(), range, escaped: true })
        }
        _ => None,
    };
    tokens.into_iter().filter_map(literal).collect()
}

/// `source` with the texts that `text` gives in the place of its literals. They must have no
/// quotes, backslashes or delimiters of tags that the literal did not have.
pub(super) fn rewritten(
    source: &str,
    literals: &[Literal],
    text: impl Fn(usize, &Literal) -> Option<String>,
) -> String {
    let mut rewritten = String::with_capacity(source.len());
    let mut start = 0;
    for (at, literal) in literals.iter().enumerate() {
        let Some(text) = text(at, literal) else { continue };
        rewritten.push_str(&source[start..literal.range.start]);
        if literal.escaped {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            rewritten.extend(["\"", &text, "\""]);
        } else {
            rewritten.push_str(&text);
        }
        start = literal.range.end;
    }
    rewritten.push_str(&source[start..]);
    rewritten
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_found_and_replaced() {
        let source = "a{{ 'b' ~ \"c\\n\\\"\" }}{% raw %} d{{ {% endraw %}\n{#- e -#} f\n";
        let found = literals(source);
        let texts: Vec<&str> = found.iter().map(|literal| &*literal.text).collect();
        assert_eq!(texts, ["a", "b", "c\n\"", " d{{ ", "f"]);
        let same = rewritten(source, &found, |_, literal| Some(literal.text.clone()));
        assert_eq!(same, source.replace("\\n", "\n"));
        let upper =
            rewritten(source, &found, |at, literal| (at != 1).then(|| literal.text.to_uppercase()));
        assert_eq!(upper, "A{{ 'b' ~ \"C\n\\\"\" }}{% raw %} D{{ {% endraw %}\n{#- e -#} F\n");
    }
}
