//! Audiences of tokens: for whom they are.

use apiloom_meta::field::go_quote;

/// The audiences of the first that are among the second, each once.
pub(crate) fn common(asked: &[String], others: &[String]) -> Vec<String> {
    let mut common: Vec<String> = Vec::new();
    for audience in asked {
        if others.contains(audience) && !common.contains(audience) {
            common.push(audience.clone());
        }
    }
    common
}

/// Texts as Go prints a list of them.
pub(crate) fn quoted(texts: &[impl AsRef<str>]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| go_quote(text.as_ref())).collect();
    format!("[{}]", texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_printed_as_go_does() {
        assert_eq!(quoted(&[] as &[&str]), "[]");
        assert_eq!(quoted(&["a", "b\n"]), r#"["a" "b\n"]"#);
    }
}
