//! The template engine's set-up: filters, functions and tests as Jinja has them.
//!
//! Instructions are counted, so none may do much: what takes a width or a count has a limit, and
//! texts that a filter makes of others are capped.

use std::time::SystemTime;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{AutoEscape, Environment, Error, FormatStyle, State, Value, escape_formatter};

use super::methods::{self, pad, stripped};
use super::operators::{self, formatted};
use super::python::{
    Capped, Json, TEXT_BYTES_MAX, Tuple, invalid, is_space, join, prints_otherwise, refused,
    replace, text_of,
};

/// Nested calls of macros: published templates nest two or three, and each takes stack.
const RECURSION_MAX: usize = 40;
/// Bytes of a format of the date: published ones have about ten.
const TIME_FORMAT_BYTES_MAX: usize = 100;
/// Parts that a list is cut into, and spaces that a line is indented by.
const PARTS_MAX: usize = 1000;

/// Jinja as chat templates use it, without what makes much of little in one instruction.
pub(super) fn environment(now: SystemTime) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_unknown_method_callback(methods::call);
    environment.set_formatter(|out, state, value| {
        if prints_otherwise(value) {
            return Ok(out.write_str(&text_of(value)?)?);
        }
        escape_formatter(out, state, value)
    });
    environment.add_function("raise_exception", |reason: String| -> Result<Value, Error> {
        Err(invalid(reason))
    });
    environment.add_function("strftime_now", move |format: String| strftime(now, &format));
    environment.add_function("joiner", minijinja_contrib::globals::joiner);
    environment
        .add_function("cycler", |items: Rest<Value>| minijinja_contrib::globals::cycler(items.0));
    operators::add_filters(&mut environment);
    add_text_filters(&mut environment);
    add_list_filters(&mut environment);
    add_tests(&mut environment);
    environment.remove_global("debug");
    environment
}

fn add_text_filters(environment: &mut Environment<'_>) {
    environment.add_filter("tojson", to_json);
    environment.add_filter("replace", |text: &Value, from: &str, to: &str, count: Option<i64>| {
        replace(&text_of(text)?, from, to, count.and_then(|count| count.try_into().ok()))
    });
    environment.add_filter("string", text_of);
    environment.add_filter("trim", |text: &Value, chars: Option<&str>| {
        Ok::<_, Error>(stripped(&text_of(text)?, chars, true, true).to_owned())
    });
    environment.add_filter("title", |text: &Value| text_of(text).map(|text| title(&text)));
    environment.add_filter("wordcount", |text: &Value| {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        text_of(text).map(|text| text.split(|c| !word(c)).filter(|word| !word.is_empty()).count())
    });
    environment.add_filter("format", |format: &str, args: Rest<Value>| {
        formatted(FormatStyle::Printf, format, &args)
    });
    environment.add_filter("center", |text: &Value, width: Option<usize>| {
        pad(&text_of(text)?, "center", width.unwrap_or(80), " ")
    });
    environment.add_filter("indent", indent);
    environment.add_filter("truncate", truncate);
    environment.add_filter("pprint", |_: Rest<Value>| -> Result<Value, Error> {
        Err(refused("the filter pprint"))
    });
    environment.add_filter("int", |value: &Value, other: Option<Value>| {
        let other = other.unwrap_or_else(|| Value::from(0));
        match value.kind() {
            ValueKind::Bool => Value::from(i64::from(value.is_true())),
            ValueKind::Number if value.is_integer() => value.clone(),
            ValueKind::Number => f64::try_from(value.clone()).map_or(other, |v| (v as i64).into()),
            _ => {
                let text = value.as_str().map(|text| text.trim().replace('_', ""));
                let whole = |text: &String| text.parse::<i64>().ok();
                let float = |text: &String| text.parse::<f64>().ok().map(|v| v as i64);
                let number = text.as_ref().and_then(|text| whole(text).or_else(|| float(text)));
                number.map_or(other, Value::from)
            }
        }
    });
    environment.add_filter("round", round);
    environment.add_filter("float", |value: &Value, other: Option<f64>| {
        let text = value.as_str().and_then(|text| text.trim().parse::<f64>().ok());
        text.or_else(|| f64::try_from(value.clone()).ok()).or(other).unwrap_or(0.0)
    });
}

fn add_list_filters(environment: &mut Environment<'_>) {
    for name in ["length", "count"] {
        environment.add_filter(name, |value: &Value| {
            let none = || invalid(format!("a value of type {} has no length", value.kind()));
            if value.is_undefined() { Ok(0) } else { value.len().ok_or_else(none) }
        });
    }
    environment.add_filter("join", |values: Value, joiner: Option<&str>, kwargs: Kwargs| {
        let attribute: Option<String> = kwargs.get("attribute")?;
        let joiner = joiner.unwrap_or_default();
        let named: Option<String> = kwargs.get("d")?;
        join(values, named.as_deref().unwrap_or(joiner), attribute.as_deref())
    });
    environment.add_filter("sum", sum);
    environment.add_filter("items", |value: &Value| -> Result<Value, Error> {
        if value.is_undefined() {
            return Ok(Value::from(Vec::<Value>::new()));
        }
        if value.kind() != ValueKind::Map {
            return Err(invalid("items of a value that is no mapping"));
        }
        let pair = |key: Value| {
            let item = value.get_item(&key)?;
            Ok(Value::from_object(Tuple(vec![key, item])))
        };
        value.try_iter()?.map(pair).collect::<Result<Vec<Value>, Error>>().map(Value::from)
    });
    environment.add_filter("dictsort", |value: &Value, kwargs: Kwargs| {
        let sorted = minijinja::filters::dictsort(value, kwargs)?;
        let pair = |pair: Value| Ok(Value::from_object(Tuple(pair.try_iter()?.collect())));
        sorted.try_iter()?.map(pair).collect::<Result<Vec<Value>, Error>>()
    });
    environment.add_filter("batch", |value: &Value, size: usize, fill: Option<Value>| {
        if size == 0 || size > PARTS_MAX {
            return Err(refused(&format!("the filter batch with {size} items")));
        }
        let items: Vec<Value> = value.try_iter()?.collect();
        let batch = |items: &[Value]| {
            let missing =
                fill.iter().flat_map(|fill| std::iter::repeat_n(fill, size - items.len()));
            items.iter().chain(missing).cloned().collect::<Vec<Value>>()
        };
        Ok(items.chunks(size).map(batch).map(Value::from).collect::<Vec<Value>>())
    });
    environment.add_filter("slice", |value: &Value, parts: usize, fill: Option<Value>| {
        if parts == 0 || parts > PARTS_MAX {
            return Err(refused(&format!("the filter slice into {parts}")));
        }
        let items: Vec<Value> = value.try_iter()?.collect();
        let (each, more) = (items.len() / parts, items.len() % parts);
        let mut items = items.into_iter();
        let part = |at: usize| {
            let mut part: Vec<Value> = items.by_ref().take(each + usize::from(at < more)).collect();
            part.extend(fill.clone().filter(|_| more > 0 && at >= more));
            Value::from(part)
        };
        Ok((0..parts).map(part).collect::<Vec<Value>>())
    });
}

fn add_tests(environment: &mut Environment<'_>) {
    environment.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String)
            || value.is_undefined()
    });
    environment.add_test("number", |value: &Value| {
        matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
    });
    environment.add_test("callable", |value: &Value| value.kind() == ValueKind::Plain);
}

/// Each word with a capital first; words end at white space, a hyphen or an opening bracket.
fn title(text: &str) -> String {
    let ends = |c: char| is_space(c) || matches!(c, '-' | '(' | '{' | '[' | '<');
    let mut first = true;
    let mut titled = String::with_capacity(text.len());
    for c in text.chars() {
        if first {
            titled.extend(c.to_uppercase());
        } else {
            titled.extend(c.to_lowercase());
        }
        first = ends(c);
    }
    titled
}

/// An argument by place, or by name; none is as left out.
fn given(placed: &[Value], at: usize, named: &Kwargs, name: &str) -> Result<Option<Value>, Error> {
    let value = match placed.get(at) {
        Some(value) => Some(value.clone()),
        None => named.get(name)?,
    };
    Ok(value.filter(|value| !value.is_none() && !value.is_undefined()))
}

fn count(value: Option<Value>, other: usize) -> Result<usize, Error> {
    let wrong = |value: &Value| invalid(format!("{value} is not a count"));
    value.map_or(Ok(other), |value| value.as_usize().ok_or_else(|| wrong(&value)))
}

/// To so many digits: the nearest value, of two the one that ends in an even digit.
fn round(value: &Value, args: Rest<Value>, named: Kwargs) -> Result<Value, Error> {
    let digits = count(given(&args, 0, &named, "precision")?, 0)?.min(20);
    let method = given(&args, 1, &named, "method")?.map(|method| method.to_string());
    if value.is_integer() && method.is_none() {
        return Ok(value.clone());
    }
    let number = f64::try_from(value.clone())?;
    let scale = (0..digits).fold(1.0, |scale, _| scale * 10.0);
    Ok(Value::from(match method.as_deref() {
        Some("ceil") => (number * scale).ceil() / scale,
        Some("floor") => (number * scale).floor() / scale,
        _ => format!("{number:.digits$}").parse().unwrap_or(number),
    }))
}

fn sum(state: &State, values: Value, args: Rest<Value>, named: Kwargs) -> Result<Value, Error> {
    let attribute = given(&args, 0, &named, "attribute")?.map(|name| name.to_string());
    let start = given(&args, 1, &named, "start")?.into_iter().map(Ok);
    let item = |value: Value| match &attribute {
        Some(name) => value.get_attr(name),
        None => Ok(value),
    };
    let items = start.chain(values.try_iter()?.map(item)).collect::<Result<Vec<_>, Error>>()?;
    minijinja::filters::sum(state, Value::from(items))
}

fn indent(value: &Value, args: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let width = count(given(&args, 0, &named, "width")?, 4)?;
    let first = given(&args, 1, &named, "first")?.is_some_and(|value| value.is_true());
    let blank = given(&args, 2, &named, "blank")?.is_some_and(|value| value.is_true());
    if width > PARTS_MAX {
        return Err(refused(&format!("indent by {width} spaces")));
    }
    let text = text_of(value)?;
    let spaces = " ".repeat(width);
    let mut out = Capped::new(TEXT_BYTES_MAX);
    for (index, line) in text.split('\n').enumerate() {
        out.put(if index > 0 { "\n" } else { "" })?;
        let indented = if index == 0 { first } else { blank || !line.is_empty() };
        out.put(if indented { &spaces } else { "" })?;
        out.put(line)?;
    }
    out.into_text()
}

fn truncate(value: &Value, args: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let length = count(given(&args, 0, &named, "length")?, 255)?;
    let kill = given(&args, 1, &named, "killwords")?.is_some_and(|value| value.is_true());
    let end = given(&args, 2, &named, "end")?.map_or_else(|| "...".into(), |end| end.to_string());
    let leeway = count(given(&args, 3, &named, "leeway")?, 5)?;
    let text = text_of(value)?;
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text);
    }
    let kept = length.checked_sub(end.chars().count());
    let kept = kept.ok_or_else(|| invalid("truncate to less than its end mark has"))?;
    let cut: String = text.chars().take(kept).collect();
    let cut = if kill { &*cut } else { cut.rsplit_once(' ').map_or(&*cut, |(left, _)| left) };
    Ok(format!("{cut}{end}"))
}

/// The time in UTC, as Python's `strftime` writes it.
fn strftime(now: SystemTime, format: &str) -> Result<String, Error> {
    use std::fmt::Write;
    if format.len() > TIME_FORMAT_BYTES_MAX {
        return Err(refused("a longer format of strftime_now"));
    }
    let mut text = String::new();
    let clock = now.duration_since(std::time::UNIX_EPOCH);
    let seconds = clock.map_or(0, |since| since.as_secs().min(i64::MAX as u64) as i64);
    let now = chrono::DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    match write!(text, "{}", now.format(format)) {
        Ok(()) => Ok(text),
        Err(_) => Err(invalid(format!("strftime_now cannot write {format:?}"))),
    }
}

/// JSON as transformers' `tojson` writes it: Python's, without escapes for HTML.
fn to_json(value: &Value, args: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let ascii = given(&args, 0, &named, "ensure_ascii")?.is_some_and(|value| value.is_true());
    let indent = given(&args, 1, &named, "indent")?;
    let indent = indent.map(|indent| count(Some(indent), 0)).transpose()?;
    if indent.is_some_and(|indent| indent > PARTS_MAX) {
        return Err(refused("tojson with such an indent"));
    }
    let comma = if indent.is_some() { "," } else { ", " };
    let mut separators = vec![comma.to_owned(), ": ".to_owned()];
    if let Some(given) = given(&args, 2, &named, "separators")? {
        separators = given.try_iter()?.map(|text| text.to_string()).collect();
    }
    let Ok([comma, colon]) = <[String; 2]>::try_from(separators) else {
        return Err(invalid("tojson takes two separators"));
    };
    let sort_keys = given(&args, 3, &named, "sort_keys")?.is_some_and(|value| value.is_true());
    Json { indent, comma, colon, sort_keys, ascii }.write(value)
}
