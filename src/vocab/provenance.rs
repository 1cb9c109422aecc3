//! Which control tokens of a rendered conversation are the template's own.
//!
//! A control token in a message must become text, and the template must see the messages as they
//! are: it may test them, cut them and search them for anything. So it is not the messages that
//! are changed but the template. It is rendered once as it is, which gives the text, and again with
//! its own literals *marked*: the characters of control tokens in them swapped for private-use
//! stand-ins that occur nowhere else. A control token of the text is a token if the marked
//! rendering, its stand-ins swapped back, is that same text, and has a stand-in for every single
//! character of the token. All else is text.
//!
//! Why this is safe: a stand-in is in no message and in nothing that the template computes from
//! one, so each one in the output was written by a literal of the template (or by a role or the
//! name of a special token, which are marked likewise), at the place where it stands. However
//! messages are cut, joined, replaced in or changed in case, a token with one character of theirs
//! has a character that is no stand-in. Nothing has to be known of the template for this, and the
//! default is text. (The marked rendering is a run of its own, which may reach the same text in
//! another way; then its tokens are those that the template writes in a run in which no message
//! can be taken for one of the marked literals.)
//!
//! Why this finds the template's tokens: swapping characters one for one changes nothing of what
//! a template commonly does with its literals. It does where a literal is compared with a message
//! that has it (`'</think>' in content`): then another text comes out, and the literals are halved
//! until those are found that must stay as they are. A control token that is written from such a
//! literal is text; one that is written whole, or around a role, from another literal is a token.
//!
//! Last, a token may have letters that are no literal's, such as a count. They are taken if one
//! more rendering gives the same text with all letters and digits *of the messages* swapped, and
//! these are not among them.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::chat::{Message, ROLES};
use super::error::Error;
use super::literals::{Literal, literals, rewritten};
use super::special::Finder;
use super::template::{Program, SpecialTexts};

/// Supplementary private-use planes 15 and 16: never white space, letters or digits, which
/// keeps filters such as `trim` from treating a stand-in otherwise than the `<` it stands for.
const STAND_INS: [std::ops::RangeInclusive<char>; 2] =
    ['\u{f0000}'..='\u{ffffd}', '\u{100000}'..='\u{10fffd}'];
/// Renderings at most: finding five literals among a hundred takes about forty.
const RENDERINGS_MAX: usize = 64;

/// A conversation as the template writes it.
#[derive(Debug)]
pub(super) struct Rendered {
    /// The text, with a stand-in for every character of a control token that is not the
    /// template's: the tokens that are found in it are those that count.
    covered: String,
    swap: Swap,
}

impl Rendered {
    pub(super) fn covered(&self) -> &str {
        &self.covered
    }

    /// A stretch of [`Rendered::covered`] with its own characters.
    pub(super) fn uncover(&self, text: &str) -> String {
        text.chars().map(|c| self.swap.back(c)).collect()
    }
}

/// Renders `messages`, and finds the control tokens that are the template's.
pub(super) fn render(
    program: &Program,
    control: &Finder,
    names: &SpecialTexts<'_>,
    messages: &[Message],
) -> Result<Rendered, Error> {
    let text = program.run(program.source(), names, messages)?;
    let found = control.ranges(&text);
    if found.is_empty() {
        return Ok(Rendered { covered: text, swap: Swap::default() });
    }
    let [marks, cover] = stand_ins(program.source(), control, names, messages, &text)?;
    let mut search = Search {
        program,
        control,
        names,
        messages,
        marks: &marks,
        text: text.chars().collect(),
        literals: literals(program.source()),
        left: RENDERINGS_MAX,
    };
    let own = search.own(&found, &text, &cover);
    let covered = text.chars().zip(own).map(|(c, own)| if own { c } else { cover.to(c) });
    Ok(Rendered { covered: covered.collect(), swap: cover })
}

/// Characters for characters, and back.
#[derive(Debug, Default)]
struct Swap {
    there: HashMap<char, char>,
    back: HashMap<char, char>,
}

impl Swap {
    fn to(&self, c: char) -> char {
        self.there.get(&c).copied().unwrap_or(c)
    }

    fn back(&self, c: char) -> char {
        self.back.get(&c).copied().unwrap_or(c)
    }
}

/// Two swaps of all characters of control tokens, for characters that occur nowhere yet.
fn stand_ins(
    source: &str,
    control: &Finder,
    names: &SpecialTexts<'_>,
    messages: &[Message],
    text: &str,
) -> Result<[Swap; 2], Error> {
    let chars: BTreeSet<char> = control.texts().flat_map(str::chars).collect();
    let may_stand_in = |c: &char| STAND_INS.iter().any(|range| range.contains(c));
    let mut taken: HashSet<char> = chars.iter().copied().filter(may_stand_in).collect();
    let decoded = literals(source);
    let texts = [source, names.bos, names.eos, names.pad, text].into_iter();
    let texts = texts.chain(messages.iter().map(|message| &*message.content));
    let texts = texts.chain(decoded.iter().map(|literal| &*literal.text));
    taken.extend(texts.flat_map(str::chars).filter(may_stand_in));
    let mut free = STAND_INS.into_iter().flatten().filter(|c| !taken.contains(c));
    let mut swaps = [Swap::default(), Swap::default()];
    for swap in &mut swaps {
        for &c in &chars {
            let stand_in = free.next().ok_or_else(|| {
                Error::Messages("use up the private-use characters of planes 15 and 16".into())
            })?;
            swap.there.insert(c, stand_in);
            swap.back.insert(stand_in, c);
        }
    }
    Ok(swaps)
}

/// What can be marked alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Unit {
    /// A literal of the source, by its place among them.
    Literal(usize),
    /// The texts of the special tokens.
    Names,
    /// The roles, and the literals that are compared with them.
    Roles,
}

struct Search<'a> {
    program: &'a Program,
    control: &'a Finder,
    names: &'a SpecialTexts<'a>,
    messages: &'a [Message],
    marks: &'a Swap,
    /// The rendering as it is.
    text: Vec<char>,
    literals: Vec<Literal>,
    /// Renderings that may still be made.
    left: usize,
}

impl Search<'_> {
    /// Whether each character of the text is known to be no message's, as far as the control
    /// tokens at `found` ask for it.
    fn own(&mut self, found: &[Range<usize>], text: &str, cover: &Swap) -> Vec<bool> {
        let whole =
            |search: &Self, at: usize| !search.control.ranges(&search.literals[at].text).is_empty();
        let (first, then): (Vec<usize>, Vec<usize>) =
            (0..self.literals.len()).partition(|&at| whole(self, at));
        let units = |literals: Vec<usize>| literals.into_iter().map(Unit::Literal);
        let phases: [Vec<Unit>; 3] =
            [units(first).chain([Unit::Names]).collect(), units(then).collect(), vec![Unit::Roles]];
        let mut marked = Vec::new();
        let mut own = vec![false; self.text.len()];
        let found = char_ranges(text, found);
        for phase in phases {
            let changed: Vec<Unit> = phase.into_iter().filter(|&unit| self.changes(unit)).collect();
            self.extend(&mut marked, &mut own, &changed);
            if found.iter().all(|range| own[range.clone()].iter().all(|&own| own)) {
                return own;
            }
        }
        let open = |range: &Range<usize>| {
            let mut chars = range.clone().map(|at| own[at] || self.text[at].is_alphanumeric());
            chars.all(|fits| fits) && own[range.clone()].contains(&true)
        };
        if found.iter().any(open) {
            self.letters(&marked, &mut own, cover);
        }
        own
    }

    /// Whether marking the unit would change anything.
    fn changes(&self, unit: Unit) -> bool {
        match unit {
            Unit::Literal(at) => {
                let text = &self.literals[at].text;
                self.mark(text) != *text
            }
            Unit::Names => {
                let names = [self.names.bos, self.names.eos, self.names.pad];
                names.into_iter().any(|name| self.mark(name) != name)
            }
            Unit::Roles => true,
        }
    }

    /// Marks as many of `units` as leave the text as it is, halving those that do not.
    fn extend(&mut self, marked: &mut Vec<Unit>, own: &mut [bool], units: &[Unit]) {
        if units.is_empty() {
            return;
        }
        let count = marked.len();
        marked.extend(units);
        if let Some(rendered) = self.rendered(marked, None) {
            let is_mark = |c: &char| self.marks.back.contains_key(c);
            own.iter_mut().zip(&rendered).for_each(|(own, c)| *own = is_mark(c));
            return;
        }
        marked.truncate(count);
        if units.len() > 1 {
            let (left, right) = units.split_at(units.len() / 2);
            self.extend(marked, own, left);
            self.extend(marked, own, right);
        }
    }

    /// Adds letters and digits that are no message's.
    fn letters(&mut self, marked: &[Unit], own: &mut [bool], cover: &Swap) {
        let swap = |c: char| if c.is_alphanumeric() { cover.to(c) } else { c };
        let swapped = |message: &Message| Message {
            role: message.role.clone(),
            content: message.content.chars().map(swap).collect(),
        };
        let messages: Vec<Message> = self.messages.iter().map(swapped).collect();
        let Some(rendered) = self.rendered(marked, Some((&messages, cover))) else { return };
        for ((own, &c), &plain) in own.iter_mut().zip(&rendered).zip(&self.text) {
            *own |= c == plain && c.is_alphanumeric();
        }
    }

    /// The characters of a rendering with some units marked, if swapped back it is the text.
    fn rendered(
        &mut self,
        marked: &[Unit],
        covered: Option<(&[Message], &Swap)>,
    ) -> Option<Vec<char>> {
        self.left = self.left.checked_sub(1)?;
        let marked: HashSet<Unit> = marked.iter().copied().collect();
        let has = |unit: Unit| marked.contains(&unit);
        let name = |text: &str| if has(Unit::Names) { self.mark(text) } else { text.to_owned() };
        let names = [self.names.bos, self.names.eos, self.names.pad].map(name);
        let [bos, eos, pad] = &names;
        let mut messages = covered.map_or(self.messages, |(messages, _)| messages).to_vec();
        if has(Unit::Roles) {
            messages.iter_mut().for_each(|message| message.role = self.mark_all(&message.role));
        }
        let source = rewritten(self.program.source(), &self.literals, |at, literal| {
            if has(Unit::Roles) && ROLES.contains(&&*literal.text) {
                return Some(self.mark_all(&literal.text));
            }
            has(Unit::Literal(at)).then(|| self.mark(&literal.text))
        });
        let rendered =
            self.program.run(&source, &SpecialTexts { bos, eos, pad }, &messages).ok()?;
        let back = |c: char| covered.map_or(c, |(_, swap)| swap.back(c));
        let same = rendered.chars().map(|c| self.marks.back(back(c))).eq(self.text.iter().copied());
        same.then(|| rendered.chars().collect())
    }

    /// A literal with the control tokens in it marked, and the characters that could be part of
    /// one with what stands beside the literal: all of control tokens but letters, digits and
    /// white space.
    fn mark(&self, text: &str) -> String {
        let symbol = |c: char| !c.is_alphanumeric() && !c.is_whitespace();
        let mut marked = String::with_capacity(text.len());
        let mut start = 0;
        let around = |stretch: &str| {
            stretch
                .chars()
                .map(|c| if symbol(c) { self.marks.to(c) } else { c })
                .collect::<String>()
        };
        for range in self.control.ranges(text) {
            marked.push_str(&around(&text[start..range.start]));
            marked.push_str(&self.mark_all(&text[range.clone()]));
            start = range.end;
        }
        marked.push_str(&around(&text[start..]));
        marked
    }

    fn mark_all(&self, text: &str) -> String {
        text.chars().map(|c| self.marks.to(c)).collect()
    }
}

/// Ranges of bytes, in rising order, as ranges of characters.
fn char_ranges(text: &str, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let (mut byte, mut char) = (0, 0);
    let mut chars_to = |to: usize| {
        char += text[byte..to].chars().count();
        byte = to;
        char
    };
    ranges.iter().map(|range| chars_to(range.start)..chars_to(range.end)).collect()
}
