//! Random expressions and documents: nothing panics, and a cost is within its estimate.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::Value as Json;

use super::{document, schema};
use crate::program::Program;
use crate::schema::Decl;
use crate::scope::Scope;
use crate::stop::Stop;
use crate::value::Value;

/// Expressions of which many have types that fit.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "self",
            "self.name",
            "self.size",
            "self.ratio",
            "self.flag",
            "self.any",
            "self.word",
            "self.data",
            "self.time",
            "self.wait",
            "self.tags",
            "self.numbers",
            "self.labels",
            "self.ports",
            "self.pod",
            "x",
            "y",
            "1",
            "0",
            "-1",
            "9223372036854775807",
            "2u",
            "1.5",
            "''",
            "'a'",
            "'ab1'",
            "b'ab'",
            "true",
            "false",
            "null",
            "[]",
            "{}",
            "optional.none()",
            "'%s'",
            "'[a-z]+'",
            "oldSelf",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        let binary = prop::sample::select(vec![
            "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||",
        ]);
        let macros = prop::sample::select(vec![
            "all",
            "exists",
            "exists_one",
            "map",
            "filter",
            "sortBy",
            "optMap",
        ]);
        let functions: Vec<&'static str> = crate::library::table()
            .into_iter()
            .map(|(name, ..)| name)
            .collect();
        let functions = prop::sample::select(functions);
        prop_oneof![
            (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), macros, inner.clone())
                .prop_map(|(a, name, b)| format!("{a}.{name}(x, {b})")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("{a}.transformMap(x, y, {b})")),
            (functions.clone(), inner.clone()).prop_map(|(name, a)| format!("{name}({a})")),
            (functions.clone(), inner.clone(), inner.clone())
                .prop_map(|(name, a, b)| format!("{a}.{name}({b})")),
            (functions, inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(name, a, b, c)| format!("{a}.{name}({b}, {c})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{{a}: {b}}}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("dyn({a})[?{b}]")),
            inner.clone().prop_map(|a| format!("dyn({a})")),
            inner.prop_map(|a| format!("!{a}")),
        ]
    })
}

/// Runs an expression, if it is one. Returns whether it had a value.
fn run(text: &str, document: &Json) -> bool {
    let decl = Arc::new(Decl::of(&schema(), false).unwrap());
    let Ok(program) = Program::compile(text, &Scope::of_rule(&decl, false), &mut 0) else {
        return false;
    };
    let Ok(this) = Value::of(document, &decl) else {
        return false;
    };
    let values = [this.clone(), this];
    let (found, cost) = program.run(&values, 100_000);
    match found {
        Ok(_) => true,
        Err(Stop::Cost) => {
            assert!(cost > 100_000);
            false
        }
        Err(Stop::Error(text)) => {
            assert!(!text.is_empty());
            false
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn expressions_of_parts_do_not_panic(text in expression()) {
        run(&text, &document());
    }

    #[test]
    fn any_text_is_read_without_panic(text in "[ -~äß\n]{0,60}") {
        run(&text, &document());
    }

    #[test]
    fn symbols_are_read_without_panic(text in "[\\[\\](){}.?:!&|<>=+*/%,'\"\\\\ru0-9eEx_ ]{0,40}") {
        run(&text, &document());
    }

    #[test]
    fn functions_take_any_text(name in prop::sample::select(crate::library::table().into_iter().map(|(name, ..)| name).collect::<Vec<_>>()),
        a in "\\PC{0,20}", b in "\\PC{0,8}", number in any::<i64>()) {
        let (a, b) = (format!("{a:?}"), format!("{b:?}"));
        let number = if number == i64::MIN { 0 } else { number };
        for text in [
            format!("dyn({a}).{name}()"), format!("dyn({a}).{name}(dyn({b}))"), format!("{name}(dyn({a}))"),
            format!("dyn({a}).{name}(dyn({number}))"), format!("dyn({a}).{name}(dyn({b}), dyn({number}))"),
            format!("dyn({a}).{name}(dyn({b}), dyn({a}), dyn({number}))"),
            format!("dyn({a}).{name}(dyn({number}), dyn({number}))"), format!("{name}(dyn({number}))"),
            format!("dyn([{a}, {b}]).{name}(dyn({number}), dyn({number}))"), format!("dyn([{a}, {b}]).{name}()"),
        ] {
            run(&text, &document());
        }
    }
}
