//! An event as one line of text: the format `legacy` of the file, and what the server logs of an event that is lost.

use apiloom_meta::field::go_quote;
use serde_json::Value;

/// The line of an event, without its end.
pub(super) fn line(event: &[u8]) -> String {
    let event: Value = serde_json::from_slice(event).unwrap_or_default();
    let text = |pointer: &str, absent: &str| {
        let text = event.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or(absent).to_owned()
    };
    let quoted = |pointer: &str, absent: &str| go_quote(&text(pointer, absent));
    let groups = |pointer: &str, absent: &str| match event.pointer(pointer) {
        Some(Value::Array(groups)) => {
            let groups = groups.iter().filter_map(Value::as_str).map(go_quote);
            go_quote(&groups.collect::<Vec<_>>().join(","))
        }
        _ => go_quote(absent),
    };
    let code = event.pointer("/responseStatus/code");
    let code = code.map_or_else(|| "<deferred>".to_owned(), Value::to_string);
    format!(
        "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} uri={} response=\"{code}\"",
        without_zeros(&text("/requestReceivedTimestamp", "")),
        quoted("/auditID", ""),
        quoted("/stage", ""),
        quoted("/sourceIPs/0", "<unknown>"),
        quoted("/verb", ""),
        quoted("/user/username", "<none>"),
        groups("/user/groups", "<none>"),
        quoted("/impersonatedUser/username", "<self>"),
        groups("/impersonatedUser/groups", "<lookup>"),
        quoted("/userAgent", ""),
        quoted("/objectRef/namespace", "<none>"),
        quoted("/requestURI", ""),
    )
}

/// A time as Go prints it in RFC3339Nano: without zeros at the end of the fraction.
fn without_zeros(time: &str) -> String {
    let Some(digits) = time.strip_suffix('Z').filter(|time| time.contains('.')) else {
        return time.to_owned();
    };
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    format!("{digits}Z")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_what_an_event_says() {
        let event = json!({
            "auditID": "a", "stage": "ResponseComplete", "requestURI": "/api", "verb": "get",
            "user": {"username": "joan", "groups": ["a", "b"]},
            "sourceIPs": ["10.0.0.1", "10.0.0.2"], "userAgent": "kubectl \"x\"",
            "responseStatus": {"metadata": {}, "code": 200},
            "requestReceivedTimestamp": "2026-11-30T20:00:00.120000Z",
        });
        let expected = r#"2026-11-30T20:00:00.12Z AUDIT: id="a" stage="ResponseComplete" ip="10.0.0.1" method="get" user="joan" groups="\"a\",\"b\"" as="<self>" asgroups="<lookup>" user-agent="kubectl \"x\"" namespace="<none>" uri="/api" response="200""#;
        assert_eq!(line(event.to_string().as_bytes()), expected);
        let event = json!({"requestReceivedTimestamp": "2026-11-30T20:00:00.000000Z"});
        let expected = r#"2026-11-30T20:00:00Z AUDIT: id="" stage="" ip="<unknown>" method="" user="<none>" groups="<none>" as="<self>" asgroups="<lookup>" user-agent="" namespace="<none>" uri="" response="<deferred>""#;
        assert_eq!(line(event.to_string().as_bytes()), expected);
    }
}
