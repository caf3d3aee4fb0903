//! JSONPaths of printer columns: plain fields, then indexes, wildcards and filters.

use apiloom_vocabulary::Comparison;

/// A path that selects items, such as `.status.conditions[?(@.type=="Ready")].status`.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// The plain fields at its start; at least one.
    pub start: Vec<String>,
    /// The steps after them.
    pub steps: Vec<QueryStep>,
}

/// A step after the plain fields.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryStep {
    /// `.name` or `['name']`.
    Field(String),
    /// `[0]`.
    Item(i64),
    /// `[*]`.
    Every,
    /// `[?(@.path)]` or, with a test, `[?(@.path=="text")]`.
    Where {
        /// The path below the item; may be empty if there is a test.
        path: Vec<String>,
        /// The comparison of the value at the path.
        test: Option<(Comparison, Literal)>,
    },
}

/// A value in a filter.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are the types")]
pub enum Literal {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
}

impl Query {
    /// Parses a path with or without a leading dot; the error describes what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut reader = Reader {
            rest: text.strip_prefix('.').unwrap_or(text),
        };
        let mut query = Query {
            start: vec![reader.first()?],
            steps: Vec::new(),
        };
        while !reader.rest.is_empty() {
            if reader.takes(".") {
                let name = reader.name()?;
                if query.steps.is_empty() && is_plain(&name) {
                    query.start.push(name);
                } else {
                    query.steps.push(QueryStep::Field(name));
                }
            } else if reader.takes("[") {
                query.steps.push(reader.bracket()?);
            } else {
                return Err("a step begins with `.` or `[`");
            }
        }
        Ok(query)
    }

    /// The status of the condition with this type.
    pub(crate) fn of_condition(condition: &str) -> Self {
        let is_it = (Comparison::Equal, Literal::Text(condition.to_owned()));
        Query {
            start: vec!["status".to_owned(), "conditions".to_owned()],
            steps: vec![
                QueryStep::Where {
                    path: vec!["type".to_owned()],
                    test: Some(is_it),
                },
                QueryStep::Field("status".to_owned()),
            ],
        }
    }
}

/// Characters that end a name that has no backslash before them.
const SPECIAL: &str = ".[]()*?@$'\"\\=!<>";

/// Whether a name needs no backslashes.
fn is_plain(name: &str) -> bool {
    !name.contains(|c: char| c.is_whitespace() || SPECIAL.contains(c))
}

/// The rest of a path.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    fn take_until(&mut self, is_end: impl Fn(char) -> bool) -> &'a str {
        let (taken, rest) = self
            .rest
            .split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Reads the field of the object with which a path begins.
    fn first(&mut self) -> Result<String, &'static str> {
        let name = self.name()?;
        is_plain(&name)
            .then_some(name)
            .ok_or("it begins with a field of the object, which has no special characters")
    }

    /// Reads a name. One with special characters has backslashes before them, or is written as `['..']`.
    fn name(&mut self) -> Result<String, &'static str> {
        let mut name = String::new();
        loop {
            name.push_str(self.take_until(|c| c.is_whitespace() || SPECIAL.contains(c)));
            if !self.takes("\\") {
                break;
            }
            name.push(self.escaped()?);
        }
        if name.is_empty() {
            return Err("a name is missing");
        }
        if name.contains('\'') {
            return Err("a name has no quotes in it");
        }
        Ok(name)
    }

    /// Reads the character after a backslash.
    fn escaped(&mut self) -> Result<char, &'static str> {
        let c = self
            .rest
            .chars()
            .next()
            .ok_or("a character is missing after the backslash")?;
        self.rest = &self.rest[c.len_utf8()..];
        Ok(c)
    }

    /// Reads the rest of a bracket after `[`, including `]`.
    fn bracket(&mut self) -> Result<QueryStep, &'static str> {
        if self.takes("?(") {
            return self.filter();
        }
        let step = if self.takes("*") {
            QueryStep::Every
        } else if self.rest.starts_with(['\'', '"']) {
            let name = self.key()?;
            // Kubernetes' JSONPath has no syntax for such a name.
            if name.is_empty() || name.contains('\'') {
                return Err("a name in brackets is not empty and has no quotes in it");
            }
            QueryStep::Field(name)
        } else {
            let number = self.take_until(|c| c == ']');
            let number = number.parse().map_err(
                |_| "in brackets stands an index, `*`, a name in quotes or a filter `?(@.a==\"b\")`",
            )?;
            QueryStep::Item(number)
        };
        if !self.takes("]") {
            return Err("`]` is missing");
        }
        Ok(step)
    }

    /// Reads a name in quotes, in which dots may have backslashes, as Kubernetes wants them.
    fn key(&mut self) -> Result<String, &'static str> {
        let Some(quote) = self.rest.chars().next() else {
            return Err("a text in quotes is missing");
        };
        self.rest = &self.rest[quote.len_utf8()..];
        let mut name = String::new();
        loop {
            name.push_str(self.take_until(|c| c == quote || c == '\\'));
            if self.rest.is_empty() {
                return Err("a quote is not closed");
            }
            if !self.takes("\\") {
                break;
            }
            name.push(self.escaped()?);
        }
        self.rest = &self.rest[quote.len_utf8()..];
        Ok(name)
    }

    fn quoted(&mut self) -> Result<String, &'static str> {
        let Some(quote) = self.rest.chars().next() else {
            return Err("a text in quotes is missing");
        };
        self.rest = &self.rest[quote.len_utf8()..];
        let text = self.take_until(|c| c == quote);
        if text.contains('\\') {
            return Err("a text in quotes has no backslashes");
        }
        if self.rest.is_empty() {
            return Err("a quote is not closed");
        }
        self.rest = &self.rest[quote.len_utf8()..];
        Ok(text.to_owned())
    }

    /// Reads the rest of a filter after `?(`, including `)]`.
    fn filter(&mut self) -> Result<QueryStep, &'static str> {
        self.skip_spaces();
        if !self.takes("@") {
            return Err("a filter begins with `@`, the item");
        }
        let mut path = Vec::new();
        while self.takes(".") {
            path.push(self.name()?);
        }
        self.skip_spaces();
        let comparison = Comparison::ALL
            .into_iter()
            .find(|comparison| self.takes(comparison.word()));
        let test = match comparison {
            Some(comparison) => {
                self.skip_spaces();
                Some((comparison, self.literal()?))
            }
            None if path.is_empty() => {
                return Err("a filter compares by `==`, `!=`, `<`, `<=`, `>` or `>=`");
            }
            None => None,
        };
        self.skip_spaces();
        if self.takes(")]") {
            Ok(QueryStep::Where { path, test })
        } else if test.is_none() && !self.rest.starts_with(')') && !self.rest.is_empty() {
            Err("a filter compares by `==`, `!=`, `<`, `<=`, `>` or `>=`")
        } else {
            Err("a filter ends with `)]`")
        }
    }

    fn literal(&mut self) -> Result<Literal, &'static str> {
        if self.rest.starts_with(['\'', '"']) {
            return self.quoted().map(Literal::Text);
        }
        let word = self.take_until(|c| c == ')' || c == ' ');
        let float = || word.parse::<f64>().ok().filter(|float| float.is_finite());
        match word {
            "true" => Ok(Literal::Bool(true)),
            "false" => Ok(Literal::Bool(false)),
            _ => word
                .parse()
                .map(Literal::Integer)
                .ok()
                .or_else(|| float().map(Literal::Float))
                .ok_or("a filter compares with a text in quotes, a number, true or false"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> QueryStep {
        QueryStep::Field(name.to_owned())
    }

    #[track_caller]
    fn check(text: &str, start: &[&str], steps: &[QueryStep]) {
        let expected = Query {
            start: start.iter().map(|name| (*name).to_owned()).collect(),
            steps: steps.to_vec(),
        };
        assert_eq!(Query::parse(text), Ok(expected), "{text}");
    }

    #[test]
    fn steps_follow_plain_fields() {
        check(".a.b-c", &["a", "b-c"], &[]);
        check(
            "a[0].b[-1]",
            &["a"],
            &[QueryStep::Item(0), field("b"), QueryStep::Item(-1)],
        );
        check(".a[*]", &["a"], &[QueryStep::Every]);
        for path in [
            ".a['x.io/y']",
            r".a['x\.io/y']",
            r#".a["x\.io/y"]"#,
            r".a.x\.io/y",
        ] {
            check(path, &["a"], &[field("x.io/y")]);
        }
        check(r".a.b\ c.d", &["a"], &[field("b c"), field("d")]);
        let is = |path: &[&str], test| QueryStep::Where {
            path: path.iter().map(|name| (*name).to_owned()).collect(),
            test,
        };
        let text = |text: &str| Literal::Text(text.to_owned());
        check(
            ".status.conditions[?(@.type==\"Ready\")].status",
            &["status", "conditions"],
            &[
                is(&["type"], Some((Comparison::Equal, text("Ready")))),
                field("status"),
            ],
        );
        assert_eq!(
            Query::parse(".status.conditions[?( @.type == 'Ready' )].status"),
            Ok(Query::of_condition("Ready"))
        );
        check(".a[?(@.b.c)]", &["a"], &[is(&["b", "c"], None)]);
        check(
            ".a[?(@<=-2)]",
            &["a"],
            &[is(
                &[],
                Some((Comparison::LessOrEqual, Literal::Integer(-2))),
            )],
        );
        check(
            ".a[?(@.b!=1.5)]",
            &["a"],
            &[is(
                &["b"],
                Some((Comparison::NotEqual, Literal::Float(1.5))),
            )],
        );
        check(
            ".a[?(@.b==true)]",
            &["a"],
            &[is(&["b"], Some((Comparison::Equal, Literal::Bool(true))))],
        );
        check(
            ".a[?(@.b==\")]\")]",
            &["a"],
            &[is(&["b"], Some((Comparison::Equal, text(")]"))))],
        );
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, expected) in [
            ("", "a name is missing"),
            (".a..b", "a name is missing"),
            (".a.", "a name is missing"),
            ("$.a", "a name is missing"),
            (".a b", "a step begins with `.` or `[`"),
            (".a[0", "`]` is missing"),
            (".a[*", "`]` is missing"),
            (".a['b", "a quote is not closed"),
            (
                ".a['']",
                "a name in brackets is not empty and has no quotes in it",
            ),
            (
                ".a[\"b'c\"]",
                "a name in brackets is not empty and has no quotes in it",
            ),
            (
                ".a['b\\'']",
                "a name in brackets is not empty and has no quotes in it",
            ),
            (".a['b\\", "a character is missing after the backslash"),
            (".a.b\\", "a character is missing after the backslash"),
            (".a.b\\'c", "a name has no quotes in it"),
            (".a[?(@.b==\"\\\")]", "a text in quotes has no backslashes"),
            (
                ".a[]",
                "in brackets stands an index, `*`, a name in quotes or a filter `?(@.a==\"b\")`",
            ),
            (
                ".a[b]",
                "in brackets stands an index, `*`, a name in quotes or a filter `?(@.a==\"b\")`",
            ),
            (
                ".a[?@.b]",
                "in brackets stands an index, `*`, a name in quotes or a filter `?(@.a==\"b\")`",
            ),
            (".a[?(b==1)]", "a filter begins with `@`, the item"),
            (
                ".a[?(@)]",
                "a filter compares by `==`, `!=`, `<`, `<=`, `>` or `>=`",
            ),
            (
                ".a[?(@.b=1)]",
                "a filter compares by `==`, `!=`, `<`, `<=`, `>` or `>=`",
            ),
            (
                ".a[?(@.b==c)]",
                "a filter compares with a text in quotes, a number, true or false",
            ),
            (
                ".a[?(@.b==)]",
                "a filter compares with a text in quotes, a number, true or false",
            ),
            (
                ".a[?(@.b==1e999)]",
                "a filter compares with a text in quotes, a number, true or false",
            ),
            (".a[?(@.b==\"c\")", "a filter ends with `)]`"),
            (".a[?(@.b==\"c\"", "a filter ends with `)]`"),
            (".a[?(@.b", "a filter ends with `)]`"),
        ] {
            assert_eq!(Query::parse(text), Err(expected), "{text}");
        }
    }
}
