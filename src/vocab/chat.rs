//! Conversations: reading them, and the templates of files that bring none.

use serde_json::Value;

use super::error::Error;

/// Turns in one conversation: far more than any model's context holds.
const MESSAGES_MAX: usize = 65_536;

/// The roles that a turn may have.
pub(super) const ROLES: [&str; 3] = ["system", "user", "assistant"];

/// One turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// `system`, `user` or `assistant`.
    pub role: String,
    /// The turn's text; control tokens in it are text.
    pub content: String,
}

impl Message {
    /// One turn.
    pub fn new(role: &str, content: &str) -> Message {
        Message { role: role.into(), content: content.into() }
    }
}

/// Reads a conversation: a JSON array of turns, or an object with such an array as `messages`.
///
/// A turn is `{"role": "system" | "user" | "assistant", "content": TEXT}`; other keys are
/// ignored. Errors name the turn.
pub fn parse_messages(json: &str) -> Result<Vec<Message>, Error> {
    let value: Value =
        serde_json::from_str(json).map_err(|error| Error::Messages(error.to_string()))?;
    let turns = match &value {
        Value::Object(object) => object.get("messages"),
        other => Some(other),
    };
    let Some(Value::Array(turns)) = turns else {
        let reason = "must be an array of turns, or an object with one as \"messages\"";
        return Err(Error::Messages(reason.into()));
    };
    let messages = turns.iter().enumerate().map(|(index, turn)| {
        Ok(Message {
            role: text_of(turn, index, "role")?,
            content: text_of(turn, index, "content")?,
        })
    });
    let messages = messages.collect::<Result<Vec<Message>, Error>>()?;
    check_messages(&messages)?;
    Ok(messages)
}

/// Refuses a conversation without turns, with too many, or with an unknown role.
pub(super) fn check_messages(messages: &[Message]) -> Result<(), Error> {
    if messages.is_empty() {
        return Err(Error::Messages("holds no turn".into()));
    }
    if messages.len() > MESSAGES_MAX {
        let reason = format!("holds {} turns; at most {MESSAGES_MAX} are allowed", messages.len());
        return Err(Error::Messages(reason));
    }
    for (index, message) in messages.iter().enumerate() {
        if !ROLES.contains(&&*message.role) {
            let role: String = message.role.chars().take(40).collect();
            let reason = format!("role is {role:?}; it must be system, user or assistant");
            return Err(Error::Message { index, reason });
        }
    }
    Ok(())
}

fn text_of(turn: &Value, index: usize, key: &str) -> Result<String, Error> {
    match turn.get(key) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(Error::Message { index, reason: format!("\"{key}\" must be a string") }),
        None => Err(Error::Message { index, reason: format!("has no \"{key}\"") }),
    }
}

/// A template for files that bring none.
pub(super) struct Fallback {
    pub(super) source: &'static str,
    /// Control tokens without which it would be plain text.
    pub(super) tokens: &'static [&'static str],
}

/// The chat format that models of `architecture` were tuned with.
pub(super) fn fallback(architecture: &str) -> Option<Fallback> {
    match architecture {
        "llada" => Some(Fallback {
            source: LLADA,
            tokens: &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        }),
        "dream" => Some(Fallback { source: DREAM, tokens: &["<|im_start|>", "<|im_end|>"] }),
        _ => None,
    }
}

/// LLaDA-8B-Instruct: a text start, then turns with Llama-3 style headers, contents trimmed.
const LLADA: &str = concat!(
    "{{ bos_token }}",
    "{% for turn in messages %}",
    "<|start_header_id|>{{ turn.role }}<|end_header_id|>\n\n{{ turn.content | trim }}<|eot_id|>",
    "{% endfor %}",
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
);

/// Dream-v0-Instruct-7B: ChatML, with a system turn also where the conversation has none.
const DREAM: &str = concat!(
    "{% if messages[0].role != 'system' %}",
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n",
    "{% endif %}",
    "{% for turn in messages %}",
    "<|im_start|>{{ turn.role }}\n{{ turn.content }}<|im_end|>\n",
    "{% endfor %}",
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let turns = r#"[{"role": "user", "content": "hi", "name": "x"}]"#;
        let wrapped = format!("{{\"messages\": {turns}}}");
        let expected = vec![Message { role: "user".into(), content: "hi".into() }];
        assert_eq!(parse_messages(turns).unwrap(), expected);
        assert_eq!(parse_messages(&wrapped).unwrap(), expected);
    }

    #[test]
    fn errors_name_the_turn() {
        let said = |json: &str| parse_messages(json).unwrap_err().to_string();
        let first = r#"{"role": "user", "content": "hi"}"#;
        assert_eq!(said(&format!("[{first}, {{}}]")), "messages[1]: has no \"role\"");
        assert_eq!(
            said(&format!(r#"[{first}, {{"role": "user", "content": ["x"]}}]"#)),
            "messages[1]: \"content\" must be a string"
        );
        assert_eq!(
            said(r#"[{"role": "tool", "content": ""}]"#),
            "messages[0]: role is \"tool\"; it must be system, user or assistant"
        );
        assert_eq!(said("[]"), "messages: holds no turn");
        for bad in ["", "3", "{}", "{\"messages\": {}}", "[3]", "null"] {
            assert!(parse_messages(bad).is_err(), "{bad}");
        }
        let deep = "[".repeat(100_000);
        assert!(parse_messages(&deep).is_err());
    }
}
