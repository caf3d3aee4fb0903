//! The parser: precedence climbing over tokens, with a limit of depth and length.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::{
    Call, Entry, Expr, Fold, FoldOp, Kind, Literal, MACRO_DEPTH, MAX_BRACKETS, MAX_DEPTH,
    OptionalMap,
};
use crate::issue::Issue;
use crate::lexer::{Token, tokens};
use crate::operator::Operator;

/// Maximum length of an expression, in characters; as in kube-apiserver.
const MAX_LENGTH: usize = 100_000;

/// Identifiers that the language keeps for itself.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

/// Parses an expression. The number is that of its nodes.
pub(crate) fn parse(source: &str) -> Result<(Expr, u32), Vec<Issue>> {
    let length = source.chars().count();
    if length > MAX_LENGTH {
        let text =
            format!("expression code point size exceeds limit: size: {length}, limit {MAX_LENGTH}");
        return Err(vec![Issue::new(0, text)]);
    }
    let (tokens, mut issues) = tokens(source);
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        next_id: 0,
        level: 0,
        is_index: false,
        malformed: Vec::new(),
        signs: HashMap::new(),
    };
    let parsed = parser.whole();
    for issue in &mut issues {
        issue.moved(&parser.signs);
    }
    issues.append(&mut parser.malformed);
    match parsed {
        Ok(expr) if issues.is_empty() => Ok((expr, parser.next_id)),
        parsed => {
            issues.extend(parsed.err());
            Err(issues)
        }
    }
}

/// The words that an expression may begin with, in messages.
const WORDS: &str =
    "'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER";

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<(Token, u32)>,
    at: usize,
    next_id: u32,
    /// Open calls of [`Parser::binary`].
    level: u16,
    /// Whether the last bracket that was opened is that of an index, not of a list.
    is_index: bool,
    /// The issues of numbers that are too large without a sign.
    malformed: Vec<Issue>,
    /// Places of numbers with a sign, and those of the signs, where their issues are told.
    signs: HashMap<u32, u32>,
}

/// The operator of a symbol, with its precedence.
fn operator(symbol: &str) -> Option<(u8, Operator)> {
    Some(match symbol {
        "==" => (1, Operator::Equal),
        "!=" => (1, Operator::NotEqual),
        "<" => (1, Operator::Less),
        "<=" => (1, Operator::LessEqual),
        ">" => (1, Operator::Greater),
        ">=" => (1, Operator::GreaterEqual),
        "in" => (1, Operator::In),
        "+" => (2, Operator::Add),
        "-" => (2, Operator::Subtract),
        "*" => (3, Operator::Multiply),
        "/" => (3, Operator::Divide),
        "%" => (3, Operator::Modulo),
        _ => return None,
    })
}

impl Parser<'_> {
    /// Parses all tokens as one expression.
    fn whole(&mut self) -> Result<Expr, Issue> {
        let expr = self.expression()?;
        match self.peek() {
            Token::End => Ok(expr),
            _ => Err(self.extraneous()),
        }
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn position(&self) -> u32 {
        self.tokens[self.at].1
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Token::Symbol(found) if *found == symbol)
    }

    /// Skips a symbol, if it is the next token.
    fn take(&mut self, symbol: &str) -> bool {
        let is_next = self.is(symbol);
        if is_next {
            self.at += 1;
        }
        is_next
    }

    fn expect(&mut self, symbol: &str) -> Result<(), Issue> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.missing(symbol))
        }
    }

    /// Skips the end of a list or a map, where a comma could be too.
    fn close(&mut self, symbol: &str) -> Result<(), Issue> {
        if self.take(symbol) {
            return Ok(());
        }
        let is_next = matches!(self.tokens.get(self.at + 1), Some((Token::Symbol(next), _)) if *next == symbol);
        let word = if is_next { "extraneous" } else { "mismatched" };
        let found = self.shown();
        let text = format!("Syntax error: {word} input '{found}' expecting {{'{symbol}', ','}}");
        Err(Issue::new(self.position() as usize, text))
    }

    /// The issue of a symbol that is not there: what stands in its place is one too many, or could follow it, or is wrong.
    fn missing(&self, symbol: &str) -> Issue {
        let position = self.position() as usize;
        let found = self.shown();
        let follows = match self.peek() {
            Token::End => symbol != ":",
            Token::Symbol(found) => {
                operator(found).is_some() || matches!(*found, "?" | "&&" | "||")
            }
            _ => symbol == ":",
        };
        let is_next = matches!(self.tokens.get(self.at + 1), Some((Token::Symbol(next), _)) if *next == symbol);
        let text = if is_next && !follows {
            format!("extraneous input '{found}' expecting '{symbol}'")
        } else if follows {
            format!("missing '{symbol}' at '{found}'")
        } else {
            format!("mismatched input '{found}' expecting '{symbol}'")
        };
        Issue::new(position, format!("Syntax error: {text}"))
    }

    /// The next token as the source has it.
    fn shown(&self) -> &str {
        let position = self.position() as usize;
        match self.tokens.get(self.at + 1) {
            Some((_, end)) => {
                let rest = self.source.get(position..*end as usize);
                let length = self.peek().len();
                let rest = rest.unwrap_or_default();
                length
                    .and_then(|length| rest.get(..length))
                    .unwrap_or(rest.trim_end())
            }
            None => "<EOF>",
        }
    }

    /// Whether the bracket before the next token follows a name.
    fn is_of_call(&self) -> bool {
        let name = self.at.checked_sub(2).and_then(|at| self.tokens.get(at));
        matches!(name, Some((Token::Identifier(_), _)))
    }

    /// The issue of a token that no expression begins with.
    fn no_expression(&self) -> Issue {
        let before = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        let starts = match before {
            Some((Token::Symbol("["), _)) if self.is_index => "'[', '{', '(', '.', '-', '!', '?'",
            Some((Token::Symbol("["), _)) => "'[', ']', '{', '(', '.', ',', '-', '!', '?'",
            Some((Token::Symbol("{"), _)) => "'[', '{', '}', '(', '.', ',', '-', '!', '?'",
            Some((Token::Symbol("("), _)) if self.is_of_call() => {
                "'[', '{', '(', ')', '.', '-', '!'"
            }
            _ => "'[', '{', '(', '.', '-', '!'",
        };
        let can_start = |token: &Token| match token {
            Token::End => false,
            Token::Symbol(found) => matches!(*found, "[" | "{" | "(" | "." | "-" | "!"),
            _ => true,
        };
        let next = self.tokens.get(self.at + 1);
        let word = if next.is_some_and(|(token, _)| can_start(token)) {
            "extraneous"
        } else {
            "mismatched"
        };
        let found = self.shown();
        let text = format!("Syntax error: {word} input '{found}' expecting {{{starts}, {WORDS}}}");
        Issue::new(self.position() as usize, text)
    }

    /// The issue of a dot without a name after it.
    fn no_field(&self, dot: u32, is_optional: bool) -> Issue {
        let shown = match self.peek() {
            _ if is_optional => return self.unexpected("{IDENTIFIER, ESC_IDENTIFIER}"),
            Token::End => "",
            Token::Symbol(_) => self.shown(),
            _ => return self.unexpected("IDENTIFIER"),
        };
        let position = self.position() as usize;
        let between = self.source.get(dot as usize..position).unwrap_or(".");
        let text = format!("Syntax error: no viable alternative at input '{between}{shown}'");
        Issue::new(position, text)
    }

    fn unexpected(&self, expected: &str) -> Issue {
        let found = self.shown();
        Issue::new(
            self.position() as usize,
            format!("Syntax error: mismatched input '{found}' expecting {expected}"),
        )
    }

    /// The issue of what follows a whole expression: one more token, or several.
    fn extraneous(&self) -> Issue {
        let is_last = matches!(self.tokens.get(self.at + 1), Some((Token::End, _)));
        if !is_last {
            return self.unexpected("<EOF>");
        }
        let text = format!(
            "Syntax error: extraneous input '{}' expecting <EOF>",
            self.shown()
        );
        Issue::new(self.position() as usize, text)
    }

    fn deep(&self, position: u32) -> Issue {
        Issue::new(
            position as usize,
            format!("expression recursion limit exceeded: {MAX_DEPTH}"),
        )
    }

    /// A node above others of a depth.
    fn node(&mut self, position: u32, below: u16, kind: Kind) -> Result<Expr, Issue> {
        if below >= MAX_DEPTH {
            return Err(self.deep(position));
        }
        let id = self.next_id;
        self.next_id += 1;
        Ok(Expr {
            id,
            position,
            depth: below + 1,
            kind,
        })
    }

    fn expression(&mut self) -> Result<Expr, Issue> {
        self.level += 1;
        if self.level > MAX_BRACKETS {
            return Err(self.deep(self.position()));
        }
        let condition = self.junction(true)?;
        let found = if self.is("?") {
            let position = self.position();
            self.at += 1;
            let first = self.junction(true)?;
            self.expect(":")?;
            let second = self.expression()?;
            let below = condition.depth.max(first.depth).max(second.depth);
            let kind = Kind::Conditional(Box::new([condition, first, second]));
            self.node(position, below, kind)
        } else {
            Ok(condition)
        };
        self.level -= 1;
        found
    }

    /// Terms with `||` between them, or factors with `&&`.
    fn junction(&mut self, is_or: bool) -> Result<Expr, Issue> {
        let symbol = if is_or { "||" } else { "&&" };
        let term = |parser: &mut Self| {
            if is_or {
                parser.junction(false)
            } else {
                parser.binary(1)
            }
        };
        let first = term(self)?;
        let position = self.position();
        if !self.is(symbol) {
            return Ok(first);
        }
        let mut terms = vec![first];
        while self.take(symbol) {
            terms.push(term(self)?);
        }
        let below = terms.iter().map(|term| term.depth).max().unwrap_or(0);
        let kind = if is_or {
            Kind::Or(terms)
        } else {
            Kind::And(terms)
        };
        self.node(position, below, kind)
    }

    fn binary(&mut self, lowest: u8) -> Result<Expr, Issue> {
        let mut left = self.unary()?;
        loop {
            let Token::Symbol(symbol) = *self.peek() else {
                return Ok(left);
            };
            let Some((precedence, operator)) = operator(symbol).filter(|(p, _)| *p >= lowest)
            else {
                return Ok(left);
            };
            let position = self.position();
            self.at += 1;
            let right = self.binary(precedence + 1)?;
            let below = left.depth.max(right.depth);
            left = self.node(
                position,
                below,
                Kind::Binary(operator, Box::new([left, right])),
            )?;
        }
    }

    fn unary(&mut self) -> Result<Expr, Issue> {
        let position = self.position();
        let symbol = if self.is("!") {
            "!"
        } else if self.is("-") {
            "-"
        } else {
            return self.member();
        };
        let mut count = 0_usize;
        while self.take(symbol) {
            count += 1;
        }
        if symbol == "-" && count == 1 {
            let negative = match self.peek() {
                Token::Literal(Literal::Int(number)) => Some(Literal::Int(number.wrapping_neg())),
                Token::Literal(Literal::Double(number)) => Some(Literal::Double(-number)),
                _ => None,
            };
            if let Some(literal) = negative {
                self.signs.insert(self.position(), position);
                self.at += 1;
                let expr = self.node(position, 0, Kind::Literal(literal))?;
                return self.suffixes(expr);
            }
        }
        let operand = self.member()?;
        if count.is_multiple_of(2) {
            return Ok(operand);
        }
        let below = operand.depth;
        let kind = if symbol == "!" {
            Kind::Not(Box::new(operand))
        } else {
            Kind::Negate(Box::new(operand))
        };
        self.node(position, below, kind)
    }

    fn member(&mut self) -> Result<Expr, Issue> {
        let expr = self.primary()?;
        self.suffixes(expr)
    }

    fn suffixes(&mut self, mut expr: Expr) -> Result<Expr, Issue> {
        loop {
            let position = self.position();
            if self.take(".") {
                let is_optional = self.take("?");
                let Token::Identifier(name) = self.peek().clone() else {
                    return Err(self.no_field(position, is_optional));
                };
                self.at += 1;
                let bracket = self.position();
                if !is_optional && self.take("(") {
                    let args = self.arguments(")")?;
                    expr = self.member_call(bracket, expr, &name, args)?;
                    continue;
                }
                let below = expr.depth;
                let kind = Kind::Select {
                    operand: Box::new(expr),
                    field: name.into(),
                    is_optional,
                };
                expr = self.node(position, below, kind)?;
            } else if self.take("[") {
                self.is_index = true;
                let is_optional = self.take("?");
                let index = self.expression()?;
                self.expect("]")?;
                let below = expr.depth.max(index.depth);
                let kind = Kind::Index {
                    operand: Box::new(expr),
                    index: Box::new(index),
                    is_optional,
                };
                expr = self.node(position, below, kind)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn arguments(&mut self, end: &str) -> Result<Vec<Expr>, Issue> {
        let mut args = Vec::new();
        if self.take(end) {
            return Ok(args);
        }
        loop {
            args.push(self.expression()?);
            if !self.take(",") {
                self.expect(end)?;
                return Ok(args);
            }
        }
    }

    fn primary(&mut self) -> Result<Expr, Issue> {
        let position = self.position();
        if self.take("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            return Ok(inner);
        }
        if self.take("[") {
            self.is_index = false;
            return self.list(position);
        }
        if self.take("{") {
            return self.map(position);
        }
        let has_dot = self.take(".");
        match self.peek().clone() {
            Token::Literal(literal) if !has_dot => {
                self.at += 1;
                if literal == Literal::Int(i64::MIN) {
                    let issue = Issue::new(position as usize, "invalid int literal");
                    self.malformed.push(issue);
                }
                self.node(position, 0, Kind::Literal(literal))
            }
            Token::Identifier(name) => {
                if RESERVED.contains(&name.as_str()) {
                    return Err(Issue::new(
                        position as usize,
                        format!("reserved identifier: {name}"),
                    ));
                }
                self.at += 1;
                let next = self.position();
                let at = position + u32::from(has_dot);
                let name = if has_dot { format!(".{name}") } else { name };
                if self.take("(") {
                    let args = self.arguments(")")?;
                    return self.global_call(next, &name, args);
                }
                if self.is("{") {
                    let text = format!("undeclared reference to '{name}' (in container '')");
                    return Err(Issue::new(next as usize, text));
                }
                self.node(at, 0, Kind::Identifier(name.into()))
            }
            _ => Err(self.no_expression()),
        }
    }

    fn list(&mut self, position: u32) -> Result<Expr, Issue> {
        let mut items = Vec::new();
        let mut below = 0;
        while !self.take("]") {
            let is_optional = self.take("?");
            let item = self.expression()?;
            below = below.max(item.depth);
            items.push((item, is_optional));
            if !self.take(",") {
                self.close("]")?;
                break;
            }
        }
        self.node(position, below, Kind::List(items))
    }

    fn map(&mut self, position: u32) -> Result<Expr, Issue> {
        let mut entries = Vec::new();
        let mut below = 0;
        while !self.take("}") {
            let is_optional = self.take("?");
            let key = self.expression()?;
            self.expect(":")?;
            let value = self.expression()?;
            below = below.max(key.depth).max(value.depth);
            entries.push(Entry {
                key,
                value,
                is_optional,
            });
            if !self.take(",") {
                self.close("}")?;
                break;
            }
        }
        self.node(position, below, Kind::Map(entries))
    }

    fn global_call(
        &mut self,
        position: u32,
        name: &str,
        mut args: Vec<Expr>,
    ) -> Result<Expr, Issue> {
        if name == "has" && args.len() == 1 {
            let Some(Expr {
                kind,
                depth,
                position: at,
                ..
            }) = args.pop()
            else {
                return Err(self.deep(position));
            };
            let Kind::Select {
                operand,
                field,
                is_optional: false,
            } = kind
            else {
                return Err(Issue::new(at as usize, "invalid argument to has() macro"));
            };
            return self.node(position, depth - 1, Kind::Has { operand, field });
        }
        self.call(position, name, None, args)
    }

    fn call(
        &mut self,
        position: u32,
        name: &str,
        target: Option<Expr>,
        args: Vec<Expr>,
    ) -> Result<Expr, Issue> {
        let parts = target.iter().chain(&args);
        let below = parts.map(|part| part.depth).max().unwrap_or(0);
        let call = Call {
            name: name.into(),
            target,
            args,
            function: None,
        };
        self.node(position, below, Kind::Call(Box::new(call)))
    }

    /// A call after a dot: a macro, or a function.
    fn member_call(
        &mut self,
        position: u32,
        target: Expr,
        name: &str,
        args: Vec<Expr>,
    ) -> Result<Expr, Issue> {
        let fold = match (name, args.len()) {
            ("all", 2 | 3) => Some((FoldOp::All, args.len() - 1, false)),
            ("exists", 2 | 3) => Some((FoldOp::Exists, args.len() - 1, false)),
            ("exists_one", 2 | 3) | ("existsOne", 3) => {
                Some((FoldOp::ExistsOne, args.len() - 1, false))
            }
            ("filter", 2) => Some((FoldOp::Filter, 1, false)),
            ("map", 2) => Some((FoldOp::Map, 1, false)),
            ("map", 3) => Some((FoldOp::Map, 1, true)),
            ("transformList", 3) => Some((FoldOp::Map, 2, false)),
            ("transformList", 4) => Some((FoldOp::Map, 2, true)),
            ("transformMap", 3) => Some((FoldOp::TransformMap, 2, false)),
            ("transformMap", 4) => Some((FoldOp::TransformMap, 2, true)),
            ("transformMapEntry", 3) => Some((FoldOp::TransformMapEntry, 2, false)),
            ("transformMapEntry", 4) => Some((FoldOp::TransformMapEntry, 2, true)),
            ("sortBy", 2) => Some((FoldOp::SortBy, 1, false)),
            _ => None,
        };
        let parts = args.iter().chain([&target]);
        let below = parts.map(|part| part.depth).max().unwrap_or(0);
        if let Some((op, variables, has_filter)) = fold {
            let last = args
                .get(variables - 1)
                .map_or(position, |name| name.position);
            let mut args = args.into_iter();
            let names = args.by_ref().take(variables);
            let names = names.map(|name| variable(name, "argument must be a simple name"));
            let names = names.collect::<Result<Vec<Arc<str>>, Issue>>()?;
            if let [first, second] = &names[..]
                && first == second
            {
                let text = format!("duplicate variable name: {first}");
                return Err(Issue::new(last as usize, text));
            }
            let filter = if has_filter { args.next() } else { None };
            let Some(body) = args.next() else {
                return Err(self.deep(position));
            };
            let fold = Fold {
                op,
                range: target,
                variables: names,
                filter,
                body,
            };
            let kind = Kind::Fold(Box::new(fold));
            return self.node(position, below + MACRO_DEPTH, kind);
        }
        if matches!(name, "optMap" | "optFlatMap") && args.len() == 2 {
            let mut args = args.into_iter();
            if let (Some(name_of), Some(body)) = (args.next(), args.next()) {
                let map = OptionalMap {
                    is_flat: name == "optFlatMap",
                    target,
                    variable: variable(
                        name_of,
                        &format!("{name}() variable name must be a simple identifier"),
                    )?,
                    body,
                };
                let kind = Kind::OptionalMap(Box::new(map));
                return self.node(position, below + MACRO_DEPTH, kind);
            }
            return Err(self.deep(position));
        }
        self.call(position, name, Some(target), args)
    }
}

/// The variable of a macro, which must be a simple name; otherwise an issue with this text.
fn variable(expr: Expr, refusal: &str) -> Result<Arc<str>, Issue> {
    match expr.kind {
        Kind::Identifier(name) => Ok(name),
        _ => Err(Issue::new(expr.position as usize, refusal)),
    }
}
