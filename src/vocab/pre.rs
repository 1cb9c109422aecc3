//! The pre-tokenizers: how a text is cut into words before merging.
//!
//! The published rules end in `\s+(?!\S)|\s+`: a run of white space that a word follows leaves
//! its last character to that word. The look-ahead is done here by hand, so that the rest is a
//! plain regular expression, which runs in linear time on any input.

use std::sync::LazyLock;

use regex::Regex;

use super::error::Error;

/// A pre-tokenizer.
#[derive(Clone, Debug)]
pub(super) struct Pre {
    regex: Regex,
    rule: &'static Rule,
    name: String,
}

impl Pre {
    /// The rule that `tokenizer.ggml.pre` names; where the key is missing, empty or `default`, the
    /// architecture settles it.
    pub(super) fn new(name: Option<&str>, architecture: &str) -> Result<Pre, Error> {
        let name = match (name, architecture) {
            (Some(name), _) if !is_open(name) => name,
            (_, "llada" | "llada-moe") => "bailingmoe",
            (_, "dream") => "qwen2",
            _ => {
                return Err(Error::PreMissing { architecture: architecture.into() });
            }
        };
        let has_name = |rule: &Rule| rule.names.split(' ').any(|known| known == name);
        let index = RULES.iter().position(has_name).ok_or_else(|| {
            let all: Vec<&str> = RULES.iter().flat_map(|rule| rule.names.split(' ')).collect();
            Error::PreUnknown { found: name.into(), supported: all.join(", ") }
        })?;
        let regex = COMPILED[index].as_ref().map_err(|error| Error::Library(error.to_string()))?;
        Ok(Pre { regex: regex.clone(), rule: &RULES[index], name: name.into() })
    }

    /// What to say where the architecture settled the rule although the file has a key for it.
    pub(super) fn assumed(&self, name: Option<&str>) -> Option<String> {
        let name = name.filter(|name| is_open(name))?;
        let rule = &self.name;
        Some(format!("tokenizer.ggml.pre is {name:?}: {rule:?} is assumed, by the architecture"))
    }

    /// Whether a file that does not say it means a BOS before each text: to llama.cpp, Llama 3's
    /// rule does.
    pub(super) fn adds_bos(&self) -> bool {
        self.rule.whole_words
    }

    /// Whether the published tokenizers with this rule compose characters (NFC): Qwen's own do,
    /// those of other models with its rule do not.
    pub(super) fn composes(&self) -> bool {
        self.name == "qwen2"
    }

    /// Whether a word that is itself a token stays whole, whatever the merges say.
    pub(super) fn whole_words(&self) -> bool {
        self.rule.whole_words
    }

    /// Length in bytes of the first word of `text[start..]`, at least one character unless empty.
    pub(super) fn word_end(&self, text: &str, start: usize) -> usize {
        let found = self.regex.find_at(text, start).filter(|found| found.start() == start);
        let Some(found) = found else {
            return text[start..].chars().next().map_or(start, |c| start + c.len_utf8());
        };
        match found.as_str().chars().next_back() {
            Some(last) if self.gives_back(last) && found.end() < text.len() => {
                let end = found.end() - last.len_utf8();
                if end > start { end } else { found.end() }
            }
            _ => found.end(),
        }
    }

    /// Whether a match that ends in `last` is one of `\s+`, the rule's last branch: all others
    /// end in something else, or in a line break where the rule has a branch for those.
    fn gives_back(&self, last: char) -> bool {
        last.is_whitespace() && !(self.rule.breaks && matches!(last, '\r' | '\n'))
    }
}

/// Whether a name leaves the rule open.
fn is_open(name: &str) -> bool {
    matches!(name, "" | "default")
}

#[derive(Debug)]
struct Rule {
    /// Names in `tokenizer.ggml.pre`, as llama.cpp reads them, with spaces between.
    names: &'static str,
    regex: &'static str,
    /// Whether line breaks have a branch of their own.
    breaks: bool,
    whole_words: bool,
}

/// Compiled once a process: it takes longer than the rest of a small vocabulary.
static COMPILED: [LazyLock<Result<Regex, regex::Error>>; 4] = [
    LazyLock::new(|| Regex::new(RULES[0].regex)),
    LazyLock::new(|| Regex::new(RULES[1].regex)),
    LazyLock::new(|| Regex::new(RULES[2].regex)),
    LazyLock::new(|| Regex::new(RULES[3].regex)),
];

static RULES: [Rule; 4] = [
    Rule {
        names: "bailingmoe bailingmoe2 llada-moe",
        regex: r"(?x)'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE]) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}
            | \x20?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n] | \s+",
        breaks: true,
        whole_words: false,
    },
    Rule {
        names: "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2",
        regex: r"(?x)'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE]) | [^\r\n\p{L}\p{N}]?\p{L}+ | \p{N}
            | \x20?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+",
        breaks: true,
        whole_words: false,
    },
    Rule {
        names: "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        regex: r"(?x)'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE]) | [^\r\n\p{L}\p{N}]?\p{L}+
            | \p{N}{1,3} | \x20?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+",
        breaks: true,
        whole_words: true,
    },
    Rule {
        names: "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum \
            modern-bert exaone4 mpt olmo jais",
        regex: r"(?x)'(?:[sdmt]|ll|ve|re) | \x20?\p{L}+ | \x20?\p{N}+
            | \x20?[^\s\p{L}\p{N}]+ | \s+",
        breaks: false,
        whole_words: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words<'a>(rule: &str, text: &'a str) -> Vec<&'a str> {
        let pre = Pre::new(Some(rule), "").unwrap();
        let (mut start, mut words) = (0, Vec::new());
        while start < text.len() {
            let end = pre.word_end(text, start);
            words.push(&text[start..end]);
            start = end;
        }
        words
    }

    #[test]
    fn digits_tell_the_rules_apart() {
        assert_eq!(words("bailingmoe", "ab 1234"), ["ab", " ", "1", "2", "3", "4"]);
        assert_eq!(words("qwen2", "ab 1234"), ["ab", " ", "1", "2", "3", "4"]);
        assert_eq!(words("llama-bpe", "ab 1234"), ["ab", " ", "123", "4"]);
        assert_eq!(words("gpt-2", "ab 1234"), ["ab", " 1234"]);
    }

    #[test]
    fn white_space_leaves_one_character_to_the_next_word() {
        assert_eq!(words("qwen2", "a   b"), ["a", "  ", " b"]);
        assert_eq!(words("qwen2", "a   "), ["a", "   "]);
        assert_eq!(words("qwen2", "a \n\n  b"), ["a", " \n\n", " ", " b"]);
        assert_eq!(words("gpt-2", "a\n\n\nb"), ["a", "\n\n", "\n", "b"]);
        assert_eq!(words("gpt-2", "a\u{2003}\u{3000}b"), ["a", "\u{2003}", "\u{3000}", "b"]);
    }

    #[test]
    fn an_unknown_rule_is_named_with_those_that_are_known() {
        let said = Pre::new(Some("tekken"), "llada").unwrap_err().to_string();
        assert!(said.contains("\"tekken\"") && said.contains("bailingmoe"), "{said}");
        assert!(Pre::new(None, "llama").is_err());
        for open in ["", "default"] {
            assert!(Pre::new(Some(open), "llama").is_err());
            let pre = Pre::new(Some(open), "llada").unwrap();
            let said = pre.assumed(Some(open)).unwrap();
            assert!(said.contains("\"bailingmoe\" is assumed"), "{said}");
        }
        assert_eq!(Pre::new(None, "dream").unwrap().assumed(None), None);
        assert!(Pre::new(None, "dream").unwrap().rule.names.starts_with("qwen2 "));
    }
}
