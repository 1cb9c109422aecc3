//! The operators `*`, `//`, `%` and `~` and slices, as Python has them and with limits.
//!
//! They are turned into filters in the template's source, before it is compiled: `a * b` becomes
//! `(a)|__mul(b)`, and `a[1:]` becomes `(a|__slice(1,none))`. What an operator's sides are follows
//! from the brackets and from Jinja's order: `+ -` bind less than `~`, that less than `* / // %`,
//! and these less than `**` and filters.

use minijinja::machinery::{Span, Token, WhitespaceConfig, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, FormatStyle, Value, format_filter};

use super::python::{TEXT_BYTES_MAX, invalid, text_of, too_long};

/// These operators in one template: published ones have fewer than a hundred.
const OPERATORS_MAX: usize = 1000;
/// Items of a list that `*` makes.
const ITEMS_MAX: usize = 100_000;
/// Digits of a width in a format.
const WIDTH_DIGITS_MAX: usize = 3;

/// What binds how tightly, of what can stand beside an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Outside,
    Sum,
    Concat,
    Product,
    Inside,
}

/// `source` with filters for the operators; a source that does not lex stays as it is.
pub(super) fn with_filters(source: &str) -> Result<String, String> {
    let lexed = tokenize(source, false, SyntaxConfig, WhitespaceConfig::default());
    let Ok(spanned) = lexed.collect::<Result<Vec<_>, _>>() else { return Ok(source.into()) };
    let (tokens, spans): (Vec<Token<'_>>, Vec<Span>) = spanned.into_iter().unzip();
    let partners = partners(&tokens);
    let mut edits: Vec<Edit> = Vec::new();
    for at in 0..tokens.len() {
        // Before the next one, whose sides may be as long as the source.
        if edits.len() > 5 * OPERATORS_MAX {
            let limit = format!("has more than {OPERATORS_MAX} of the operators *, //, %, ~");
            return Err(limit + " and slices");
        }
        if matches!(tokens[at], Token::BracketOpen) {
            slice_edits(&tokens, &spans, &partners, at, &mut edits);
        }
        let (name, order) = match &tokens[at] {
            Token::Mul if !is_unary(&tokens, at) => ("__mul", Order::Product),
            Token::Mod => ("__rem", Order::Product),
            Token::FloorDiv => ("__floordiv", Order::Product),
            Token::Tilde => ("__concat", Order::Concat),
            _ => continue,
        };
        let left = left_side(&tokens, &partners, at, order);
        let right = right_side(&tokens, &partners, at, order);
        if left == at || right == at {
            continue;
        }
        let [start, end] = [spans[at].start_offset as usize, spans[at].end_offset as usize];
        let (from, to) = (spans[left].start_offset as usize, spans[right].end_offset as usize);
        edits.push((to, 0, to, ")".into()));
        edits.push((start, 1, end, format!(")|{name}(")));
        edits.push((from, 2, from, "(".into()));
    }
    edits.sort_by_key(|edit| (edit.0, edit.1));
    let (mut text, mut start) = (String::with_capacity(source.len() + 16 * edits.len()), 0);
    for (from, _, to, new) in edits {
        text.push_str(&source[start..from]);
        text.push_str(&new);
        start = to;
    }
    text.push_str(&source[start..]);
    Ok(text)
}

/// Where something is put in, what comes first of those at one place, up to where it stands in the
/// place of something, and what it is.
type Edit = (usize, u8, usize, String);

/// What turns the slice whose bracket opens at `at`, if it is one, into a filter.
fn slice_edits(
    tokens: &[Token<'_>],
    spans: &[Span],
    partners: &[usize],
    at: usize,
    edits: &mut Vec<Edit>,
) {
    let close = partners[at];
    let Some(first) = sliced(tokens, partners, at).filter(|_| close > at) else { return };
    let mut edit = |token: usize, text: String| {
        edits.push((spans[token].start_offset as usize, 1, spans[token].end_offset as usize, text));
    };
    let (mut inside, mut empty, mut colons) = (at + 1, true, 0);
    while inside < close {
        if matches!(tokens[inside], Token::Colon) {
            edit(inside, if empty { "none," } else { "," }.into());
            colons += 1;
            empty = true;
        } else {
            empty = false;
        }
        inside = partners[inside].max(inside) + 1;
    }
    if colons > 0 {
        edit(at, "|__slice(".into());
        edit(close, if empty { "none))" } else { "))" }.into());
        let start = spans[first].start_offset as usize;
        edits.push((start, 2, start, "(".into()));
    }
}

/// The first token of what the bracket at `at` takes a part of, if it stands after anything.
fn sliced(tokens: &[Token<'_>], partners: &[usize], at: usize) -> Option<usize> {
    let value = |at: usize| {
        order_of(tokens, at) == Order::Inside
            && !matches!(tokens[at], Token::Pow | Token::Dot | Token::Pipe)
            && !matches!(tokens[at], Token::Plus | Token::Minus)
    };
    let mut first = partners[at.checked_sub(1).filter(|&before| value(before))?];
    loop {
        let before = first.checked_sub(1);
        let opens = matches!(tokens[first], Token::ParenOpen | Token::BracketOpen);
        first = match before {
            Some(before) if matches!(tokens[before], Token::Dot) && before > 0 => {
                partners[before - 1]
            }
            Some(before) if opens && value(before) => partners[before],
            _ => return Some(first),
        };
    }
}

/// For each bracket, where the other one of its pair is.
fn partners(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut partners: Vec<usize> = (0..tokens.len()).collect();
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => open.push(at),
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                if let Some(partner) = open.pop() {
                    (partners[at], partners[partner]) = (partner, at);
                }
            }
            _ => {}
        }
    }
    partners
}

/// How the token at `at` binds.
fn order_of(tokens: &[Token<'_>], at: usize) -> Order {
    let before = at.checked_sub(1).map(|before| &tokens[before]);
    match &tokens[at] {
        Token::Plus | Token::Minus if is_unary(tokens, at) => Order::Inside,
        Token::Plus | Token::Minus => Order::Sum,
        Token::Tilde => Order::Concat,
        Token::Mul | Token::Div | Token::FloorDiv | Token::Mod => Order::Product,
        Token::Ident(_) if matches!(before, Some(Token::Dot | Token::Pipe)) => Order::Inside,
        Token::Ident("not") if matches!(before, Some(Token::Ident("is"))) => Order::Inside,
        Token::Ident("if" | "elif" | "else" | "in" | "and" | "or" | "not" | "recursive") => {
            Order::Outside
        }
        Token::Ident(_)
        | Token::Str(_)
        | Token::String(_)
        | Token::Int(_)
        | Token::Int128(_)
        | Token::Float(_)
        | Token::Pow
        | Token::Dot
        | Token::Pipe
        | Token::ParenClose
        | Token::BracketClose
        | Token::BraceClose => Order::Inside,
        _ => Order::Outside,
    }
}

/// Whether a sign stands before its only operand.
fn is_unary(tokens: &[Token<'_>], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return true };
    match &tokens[before] {
        Token::Pow => true,
        Token::Plus | Token::Minus => true,
        _ => order_of(tokens, before) != Order::Inside,
    }
}

/// The first token of what stands left of the operator at `at`, which that is if nothing does.
fn left_side(tokens: &[Token<'_>], partners: &[usize], at: usize, order: Order) -> usize {
    let mut first = at;
    while let Some(before) = first.checked_sub(1) {
        if order_of(tokens, before) < order {
            break;
        }
        first = partners[before];
    }
    first
}

/// The last token of what stands right of the operator at `at`, which that is if nothing does.
fn right_side(tokens: &[Token<'_>], partners: &[usize], at: usize, order: Order) -> usize {
    let mut last = at;
    while let Some(token) = tokens.get(last + 1) {
        let opens = matches!(token, Token::ParenOpen | Token::BracketOpen | Token::BraceOpen);
        if !opens && order_of(tokens, last + 1) <= order {
            break;
        }
        if matches!(token, Token::ParenClose | Token::BracketClose | Token::BraceClose) {
            break;
        }
        last = if opens { partners[last + 1].max(last + 1) } else { last + 1 };
    }
    last
}

/// Adds the filters that operators become.
pub(super) fn add_filters(environment: &mut Environment<'_>) {
    environment.add_filter("__mul", mul);
    environment.add_filter("__rem", rem);
    environment.add_filter("__floordiv", floor_div);
    environment.add_filter("__concat", concat);
    environment.add_filter("__slice", slice);
}

/// `value[start:stop:step]`, where none is the default.
fn slice(value: &Value, start: Value, stop: Value, step: Option<Value>) -> Result<Value, Error> {
    let int = |value: Value| {
        let wrong = || invalid(format!("a slice takes numbers, not {}", value.kind()));
        if value.is_none() { Ok(None) } else { whole(&value).map(Some).ok_or_else(wrong) }
    };
    let (start, stop) = (int(start)?, int(stop)?);
    let step = step.map_or(Ok(None), int)?.unwrap_or(1);
    if step == 0 {
        return Err(invalid("a slice's step is zero"));
    }
    match (value.as_str(), value.kind()) {
        (Some(text), _) => {
            let chars: Vec<char> = text.chars().collect();
            let part = places(chars.len(), start, stop, step).map(|at| chars[at]);
            Ok(Value::from(part.collect::<String>()))
        }
        (None, ValueKind::Seq | ValueKind::Iterable) => {
            let items: Vec<Value> = value.try_iter()?.collect();
            let part = places(items.len(), start, stop, step).map(|at| items[at].clone());
            Ok(Value::from(part.collect::<Vec<Value>>()))
        }
        (None, kind) => Err(invalid(format!("a value of type {kind} cannot be sliced"))),
    }
}

/// The places that a slice takes of `count`.
fn places(
    count: usize,
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
) -> impl Iterator<Item = usize> {
    let count = count as i64;
    let (low, high) = if step > 0 { (0, count) } else { (-1, count - 1) };
    let place = |at: i64| if at < 0 { at.saturating_add(count) } else { at }.clamp(low, high);
    let (first, last) = if step > 0 { (low, high) } else { (high, low) };
    let (start, stop) = (start.map_or(first, place), stop.map_or(last, place));
    let inside = move |at: &i64| if step > 0 { *at < stop } else { *at > stop };
    std::iter::successors(Some(start), move |at| at.checked_add(step))
        .take_while(inside)
        .map(|at| at as usize)
}

fn concat(left: &Value, right: &Value) -> Result<String, Error> {
    let (left, right) = (text_of(left)?, text_of(right)?);
    if left.len() + right.len() > TEXT_BYTES_MAX {
        return Err(too_long(TEXT_BYTES_MAX));
    }
    Ok(left + &right)
}

/// A whole number, where a truth value is one too.
fn whole(value: &Value) -> Option<i64> {
    match value.kind() {
        ValueKind::Bool => Some(i64::from(value.is_true())),
        ValueKind::Number if value.is_integer() => value.as_i64(),
        _ => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value.kind() {
        ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        ValueKind::Number => f64::try_from(value.clone()).ok(),
        _ => None,
    }
}

fn mul(left: &Value, right: &Value) -> Result<Value, Error> {
    let refused = || invalid("the operator * is refused here: it could take all memory");
    let wrong = || invalid(format!("cannot multiply {} and {}", left.kind(), right.kind()));
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        return left.checked_mul(right).map(Value::from).ok_or_else(refused);
    }
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return Ok(Value::from(left * right));
    }
    let (value, times) = match (whole(left), whole(right)) {
        (None, Some(times)) => (left, times),
        (Some(times), None) => (right, times),
        _ => return Err(wrong()),
    };
    let times = usize::try_from(times).unwrap_or(0);
    if let Some(text) = value.as_str() {
        let bytes = text.len().checked_mul(times).filter(|&bytes| bytes <= TEXT_BYTES_MAX);
        return bytes.map(|_| Value::from(text.repeat(times))).ok_or_else(refused);
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(wrong());
    }
    let items: Vec<Value> = value.try_iter()?.take(ITEMS_MAX + 1).collect();
    let count = items.len().checked_mul(times).filter(|&count| count <= ITEMS_MAX);
    let repeated = count.map(|count| items.into_iter().cycle().take(count).collect::<Vec<_>>());
    repeated.map(Value::from).ok_or_else(refused)
}

fn rem(left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(format) = left.as_str() {
        let args = match right.kind() {
            ValueKind::Seq => right.try_iter()?.collect(),
            _ => vec![right.clone()],
        };
        return formatted(FormatStyle::Printf, format, &args).map(Value::from);
    }
    let zero = || invalid("the right side of % is zero");
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        let rest = left.checked_rem(right).ok_or_else(zero)?;
        let other_sign = rest != 0 && (rest < 0) != (right < 0);
        return Ok(Value::from(if other_sign { rest + right } else { rest }));
    }
    match (number(left), number(right)) {
        (Some(_), Some(0.0)) => Err(zero()),
        (Some(left), Some(right)) => {
            let rest = left % right;
            let other_sign = rest != 0.0 && (rest < 0.0) != (right < 0.0);
            Ok(Value::from(if other_sign { rest + right } else { rest }))
        }
        _ => Err(invalid(format!("cannot use % on {} and {}", left.kind(), right.kind()))),
    }
}

/// The whole part of a quotient, towards minus infinity.
fn floor_div(left: &Value, right: &Value) -> Result<Value, Error> {
    let zero = || invalid("the right side of // is zero");
    if let (Some(left), Some(right)) = (whole(left), whole(right)) {
        let quotient = left.checked_div(right).ok_or_else(zero)?;
        let rounded_up = left % right != 0 && (left < 0) != (right < 0);
        return Ok(Value::from(quotient - i64::from(rounded_up)));
    }
    match (number(left), number(right)) {
        (Some(_), Some(0.0)) => Err(zero()),
        (Some(left), Some(right)) => Ok(Value::from((left / right).floor())),
        _ => Err(invalid(format!("cannot divide {} by {}", left.kind(), right.kind()))),
    }
}

/// Formats as Python does, with widths of a few digits.
pub(super) fn formatted(style: FormatStyle, format: &str, args: &[Value]) -> Result<String, Error> {
    let digits = format.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    let nested = match style {
        FormatStyle::Printf => format.contains('*'),
        FormatStyle::StrFormat => {
            format.split('{').skip(1).any(|part| part.ends_with([':', '<', '>']))
        }
    };
    if digits > WIDTH_DIGITS_MAX || nested {
        return Err(invalid("a format with such a width is refused: it could take all memory"));
    }
    let keyed = format.contains("%(") || style == FormatStyle::StrFormat;
    let printed = |value: &Value| match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable if !keyed => {
            text_of(value).map(Value::from)
        }
        _ => Ok(value.clone()),
    };
    let args = args.iter().map(printed).collect::<Result<Vec<Value>, Error>>()?;
    let total: usize = args.iter().filter_map(Value::as_str).map(str::len).sum();
    if total.saturating_mul(format.len()) > 64 * TEXT_BYTES_MAX {
        return Err(too_long(TEXT_BYTES_MAX));
    }
    format_filter(style, format, &args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_become_filters_around_their_sides() {
        let cases = [
            ("{{ a*b }}", "{{ (a)|__mul(b) }}"),
            ("{{ a.x[1] * -b|f + c }}", "{{ (a.x[1] )|__mul( -b|f) + c }}"),
            ("{{ a ~ b*c ~ d - e }}", "{{ ((a )|__concat( (b)|__mul(c)) )|__concat( d) - e }}"),
            ("{{ f(x=a % b, *c) }}", "{{ f(x=(a )|__rem( b), *c) }}"),
            ("{% if (a) * 2 == (b+1)*c %}", "{% if ((a) )|__mul( 2) == ((b+1))|__mul(c) %}"),
            (
                "{{ a if b ~ c else -1 * d ** 2 }}",
                "{{ a if (b )|__concat( c) else (-1 )|__mul( d ** 2) }}",
            ),
            (
                "{{ [a * b, {'k': c % 2}][x % 2] }}",
                "{{ [(a )|__mul( b), {'k': (c )|__rem( 2)}][(x )|__rem( 2)] }}",
            ),
            (
                "{{ a[1:] }}{{ a.b(c)[:-1].d[x] }}",
                "{{ (a|__slice(1,none)) }}{{ (a.b(c)|__slice(none,-1)).d[x] }}",
            ),
            (
                "{{ a ~ b['c'][::n * 2] }}",
                "{{ (a )|__concat( (b['c']|__slice(none,none,(n )|__mul( 2)))) }}",
            ),
            (
                "{{ [1, {2: 3}] }}{{ x[{2: 3}] }}{{ (a)[b[1:]:] }}",
                "{{ [1, {2: 3}] }}{{ x[{2: 3}] }}{{ ((a)|__slice((b|__slice(1,none)),none)) }}",
            ),
            ("{{ 1 / 2 * 3 }}* ~", "{{ (1 / 2 )|__mul( 3) }}* ~"),
        ];
        for (source, expected) in cases {
            assert_eq!(with_filters(source).as_deref(), Ok(expected), "{source}");
        }
    }

    #[test]
    fn too_many_operators_are_refused() {
        let source = |count: usize| format!("{{{{ 1{} }}}}", "*1".repeat(count));
        assert!(with_filters(&source(OPERATORS_MAX)).is_ok());
        assert!(with_filters(&source(2 * OPERATORS_MAX)).unwrap_err().contains("more than 1000"));
    }
}
