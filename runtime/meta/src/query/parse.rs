//! Parses the JSONPath of a printer column.

use serde_json::Value;

use super::{Comparison, JsonQuery, QueryFilter, QueryStep};
use crate::path::JsonPath;

/// Why a text is not a JSONPath that a printer column can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}, at byte {at} of {path:?}")]
pub struct QueryError {
    text: &'static str,
    at: usize,
    path: String,
}

impl JsonQuery {
    /// Parses a JSONPath: field names, which may have escaped dots (`.metadata.labels.app\.io/name`) or be keys in
    /// brackets (`['app.io/name']`), items (`[0]`, `[-1]`, `[*]`, `.*`) and filters that compare with a literal
    /// (`[?(@.type=="Ready")]`) or find a value (`[?(@.type)]`).
    ///
    /// ```
    /// use apiloom_meta::query::JsonQuery;
    /// let query = JsonQuery::parse(r#".status.conditions[?(@.type=="Ready")].status"#)?;
    /// let document = serde_json::json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    /// assert_eq!(query.first(&document).unwrap(), "True");
    /// # Ok::<(), apiloom_meta::query::QueryError>(())
    /// ```
    ///
    /// # Errors
    /// If the path is malformed, or has slices, unions, `..` or a filter of another form, which columns here do not
    /// support.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let mut parser = Parser { text, at: 0 };
        let mut steps = Vec::new();
        parser.take("$");
        while !parser.rest().is_empty() {
            steps.push(parser.step()?);
        }
        let mut names = Vec::new();
        let mut steps = steps.into_iter().peekable();
        let is_plain = |step: &QueryStep| match step {
            QueryStep::Field(name) => {
                JsonPath::parse(name).is_some_and(|it| it.names() == [&**name])
            }
            _ => false,
        };
        while let Some(QueryStep::Field(name)) = steps.next_if(is_plain) {
            names.push(name);
        }
        if names.is_empty() {
            return Err(parser.error("it must begin with a field of the object"));
        }
        let start = Self::new(JsonPath::new(names));
        Ok(steps.fold(start, Self::then))
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn take(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    fn error(&self, text: &'static str) -> QueryError {
        QueryError {
            text,
            at: self.at,
            path: crate::field::echoed(self.text).into_owned(),
        }
    }

    fn step(&mut self) -> Result<QueryStep, QueryError> {
        if self.rest().starts_with("..") {
            return Err(self.error("`..` is not supported"));
        }
        if self.take("[?(") {
            return self.filter();
        }
        if self.take("[") {
            return self.bracket();
        }
        if !self.take(".") {
            return Err(self.error("expected `.` or `[`"));
        }
        match self.name()?.as_str() {
            "*" => Ok(QueryStep::Every),
            name => Ok(QueryStep::Field(name.to_owned())),
        }
    }

    /// A field name up to the next separator that is not escaped.
    fn name(&mut self) -> Result<String, QueryError> {
        let mut name = String::new();
        let mut characters = self.rest().char_indices();
        let mut end = self.rest().len();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
                '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}' | ' ' | '\t' | '\r' | '\n' => {
                    end = at;
                    break;
                }
                character => name.push(character),
            }
        }
        if name.is_empty() {
            return Err(self.error("expected the name of a field"));
        }
        self.at += end;
        Ok(name)
    }

    /// The text up to a token, which is skipped.
    fn until(&mut self, token: &str, missing: &'static str) -> Result<&'a str, QueryError> {
        let Some(end) = self.rest().find(token) else {
            return Err(self.error(missing));
        };
        let inner = &self.rest()[..end];
        self.at += end + token.len();
        Ok(inner)
    }

    fn bracket(&mut self) -> Result<QueryStep, QueryError> {
        let start = self.at;
        if self.take("'") {
            let key = self.until("'", "a quote is not closed")?;
            return if self.take("]") && !key.is_empty() {
                Ok(QueryStep::Field(key.replace('\\', "")))
            } else {
                Err(self.error("expected one key and `]`"))
            };
        }
        let inner = self.until("]", "`[` is not closed")?;
        if inner == "*" {
            return Ok(QueryStep::Every);
        }
        self.at = start;
        let digits = inner.strip_prefix('-').unwrap_or(inner);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match inner.parse() {
            Ok(number) if is_number => {
                self.at += inner.len() + 1;
                Ok(QueryStep::Item(number))
            }
            _ => Err(self.error("expected a number, `*` or a quoted key")),
        }
    }

    fn filter(&mut self) -> Result<QueryStep, QueryError> {
        self.spaces();
        if !self.take("@") {
            return Err(self.error("a filter must begin with `@`"));
        }
        let mut names = Vec::new();
        while self.take(".") {
            let operators = ['=', '!', '<', '>', ')'];
            let end = self.rest().find(operators).unwrap_or(self.rest().len());
            let mut inner = Parser {
                text: &self.text[..self.at + end],
                at: self.at,
            };
            names.push(inner.name()?);
            self.at = inner.at;
        }
        let path = JsonPath::new(names);
        self.spaces();
        let comparisons = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let found = comparisons.iter().find(|(token, _)| self.take(token));
        let filter = match found {
            None => QueryFilter::exists(path),
            Some((_, comparison)) => {
                self.spaces();
                QueryFilter::compares(path, *comparison, self.literal()?)
            }
        };
        self.spaces();
        if self.take(")]") {
            Ok(QueryStep::Where(filter))
        } else {
            Err(self.error("expected `)]`"))
        }
    }

    /// A quoted text, a number or a boolean.
    fn literal(&mut self) -> Result<Value, QueryError> {
        for quote in ["'", "\""] {
            if self.take(quote) {
                return self.quoted(quote);
            }
        }
        let end = self.rest().find([')', ' ']).unwrap_or(self.rest().len());
        let literal = match &self.rest()[..end] {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            number => match serde_json::from_str(number.trim_start_matches('+')) {
                Ok(number @ Value::Number(_)) => number,
                _ => return Err(self.error("expected a quoted text, a number, true or false")),
            },
        };
        self.at += end;
        Ok(literal)
    }

    fn quoted(&mut self, quote: &str) -> Result<Value, QueryError> {
        let mut text = String::new();
        let mut characters = self.rest().char_indices();
        while let Some((at, character)) = characters.next() {
            if self.rest()[at..].starts_with(quote) {
                self.at += at + quote.len();
                return Ok(text.into());
            }
            if character == '\\' {
                text.extend(characters.next().map(|(_, escaped)| match escaped {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                }));
            } else {
                text.push(character);
            }
        }
        Err(self.error("a quote is not closed"))
    }

    fn spaces(&mut self) {
        while self.take(" ") {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn finds(path: &str, expected: Value) {
        let document = json!({
            "metadata": {"labels": {"app.io/name": "web", "a": "b"}},
            "spec": {"replicas": 3, "hosts": ["x", "y"], "map": {"k": {"v": 1}}},
            "status": {"conditions": [
                {"type": "Synced", "status": "False", "n": 1},
                {"type": "Ready (all)", "status": "True", "n": 2.5, "ok": true}]},
        });
        match JsonQuery::parse(path) {
            Ok(query) => {
                let found = query.first(&document).cloned();
                assert_eq!(found, Some(expected).filter(|it| !it.is_null()), "{path}");
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_paths_of_columns_are_parsed() {
        finds(".spec.replicas", json!(3));
        finds("$.spec.replicas", json!(3));
        finds(r".metadata.labels.app\.io/name", json!("web"));
        finds(".metadata.labels['app.io/name']", json!("web"));
        finds(r".metadata.labels['app\.io/name']", json!("web"));
        finds("['spec'].replicas", json!(3));
        finds(".spec.hosts[0]", json!("x"));
        finds(".spec.hosts[-1]", json!("y"));
        finds(".spec.hosts[*]", json!("x"));
        finds(".spec.hosts[7]", json!(null));
        finds(".spec.map.*.v", json!(1));
        let status = ".status.conditions";
        finds(
            &format!(r#"{status}[?(@.type=="Synced")].status"#),
            json!("False"),
        );
        finds(
            &format!("{status}[?(@.type == 'Ready (all)')].status"),
            json!("True"),
        );
        finds(&format!("{status}[?( @.n >= 2 )].status"), json!("True"));
        finds(&format!("{status}[?(@.ok==true)].status"), json!("True"));
        finds(&format!("{status}[?(@.ok)].n"), json!(2.5));
        finds(&format!("{status}[?(@.n<-1)].n"), json!(null));
        finds(r".spec.hosts[?(@=='y')]", json!("y"));
    }

    #[test]
    fn other_paths_are_errors() {
        for path in [
            "",
            "$",
            "spec",
            ".",
            ".spec.",
            ".spec..a",
            "..name",
            ".a[",
            ".a[1:2]",
            ".a['b','c']",
            ".a['b'",
            ".a['']",
            ".a[b]",
            ".a[--1]",
            ".a[99999999999999999999]",
            ".a[?(@.b==)]",
            ".a[?(@.b=='c)]",
            ".a[?(@.b=~'c')]",
            ".a[?(b)]",
            ".a[?(@.b)",
            "[0]",
            ".a {.b}",
        ] {
            assert!(JsonQuery::parse(path).is_err(), "{path:?}");
        }
        let error = JsonQuery::parse(".a[1:2]").unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"expected a number, `*` or a quoted key, at byte 3 of ".a[1:2]""#
        );
    }

    #[test]
    fn printed_queries_are_parsed_again() {
        for path in [
            ".a.b",
            ".a['b.c'][0]",
            ".a[*].b",
            r#".a[?(@.b.c!="x")].d"#,
            ".a[?(@.b<1.5)]",
            ".a[?(@.b)]",
        ] {
            let query = JsonQuery::parse(path).unwrap();
            assert_eq!(JsonQuery::parse(&query.to_string()), Ok(query), "{path}");
        }
    }
}
