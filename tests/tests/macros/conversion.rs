//! Conversion between versions: automatic and declared, in both directions.

use apiloom::meta::codec::Encoder;
use apiloom::meta::kind::{Conversion, ConvertJson, InMemoryConversion};
use apiloom::meta::schema::Schema;
use apiloom::meta::{Object, ResourceDef};
use apiloom::prelude::*;
use serde_json::{Value, json};

use super::wardle;

pub mod v1 {
    use apiloom::prelude::*;

    #[apiloom::resource(group = "example.com", version = "v1", namespaced, hub)]
    pub struct Box {
        pub metadata: ObjectMeta,
        pub spec: Spec,
        pub parts: Vec<Part>,
        pub by_name: BTreeMap<String, Part>,
        pub maybe: Option<Part>,
        pub note: Option<String>,
    }

    #[apiloom::api]
    pub struct Spec {
        pub seconds: i64,
        pub new_name: String,
        pub only_here: bool,
        pub lost: Option<String>,
        pub mode: Mode,
    }

    #[apiloom::api]
    pub struct Part {
        pub size: i32,
    }

    #[apiloom::api]
    pub enum Mode {
        Fast,
        Slow,
        #[api(unknown)]
        Unknown(String),
    }
}

pub mod v1alpha1 {
    use super::v1;
    use apiloom::prelude::*;

    #[apiloom::resource(group = "example.com", version = "v1alpha1", namespaced, storage, spoke_of = v1::Box)]
    pub struct Box {
        pub metadata: ObjectMeta,
        pub spec: Spec,
        pub parts: Vec<Part>,
        pub by_name: BTreeMap<String, Part>,
        pub maybe: Option<Part>,
        #[api(convert(rename = note))]
        pub comment: Option<String>,
    }

    #[apiloom::api(convert(peer = v1::Spec, hub_only(only_here = true), lossy(lost)))]
    pub struct Spec {
        #[api(convert(rename = seconds, with = (to_seconds, to_minutes)))]
        pub minutes: i32,
        #[api(convert(rename = new_name))]
        pub old_name: String,
        #[api(convert(drop, default = Some(7)))]
        pub forgotten: Option<i32>,
        pub mode: Mode,
    }

    fn to_seconds(minutes: i32) -> i64 {
        i64::from(minutes) * 60
    }

    fn to_minutes(seconds: i64) -> i32 {
        i32::try_from(seconds / 60).unwrap_or(i32::MAX)
    }

    #[apiloom::api(convert(peer = v1::Part, manual))]
    pub struct Part {
        // Values that cannot be converted are refused by validation.
        #[api(pattern = "^[0-9]{1,9}$")]
        pub size: String,
    }

    impl ConvertFrom<Part> for v1::Part {
        fn convert_from(part: Part) -> Result<Self, ConvertError> {
            let size = part
                .size
                .parse()
                .map_err(|_| ConvertError::new("not a number").inside("size"))?;
            Ok(Self { size })
        }
    }

    impl ConvertFrom<v1::Part> for Part {
        fn convert_from(part: v1::Part) -> Result<Self, ConvertError> {
            Ok(Self {
                size: part.size.to_string(),
            })
        }
    }

    #[apiloom::api(convert(peer = v1::Mode))]
    pub enum Mode {
        Fast,
        Slow,
        #[api(unknown)]
        Unknown(String),
    }
}

#[test]
fn functions_of_a_conversion_may_fail_and_integers_are_widened() {
    #[apiloom::api]
    #[derive(PartialEq)]
    pub struct Hub {
        pub seconds: i64,
        pub count: u64,
        pub sizes: Vec<i32>,
        pub limit: i64,
    }

    #[apiloom::api(convert(peer = Hub))]
    #[derive(PartialEq)]
    pub struct Spoke {
        #[api(convert(with = (read, |seconds| format!("{seconds}s"))))]
        pub seconds: String,
        #[api(convert(with = (u64::from, u8::try_from)))]
        pub count: u8,
        #[api(convert(with = (ConvertFrom::convert_from, narrow)))]
        pub sizes: Vec<i16>,
        #[api(convert(with = (Into::into, |_| Err::<i8, _>("never fits"))))]
        pub limit: i8,
    }

    fn read(text: String) -> Result<i64, ConvertError> {
        let digits = text.trim_end_matches('s');
        let wrong = |_| ConvertError::new(format!("{text:?} is not a number of seconds"));
        digits.parse().map_err(wrong)
    }

    fn narrow(sizes: Vec<i32>) -> Result<Vec<i16>, std::num::TryFromIntError> {
        sizes.into_iter().map(i16::try_from).collect()
    }

    #[apiloom::api(convert(peer = Hub, with = (to_hub, from_hub)))]
    pub struct Text {
        pub text: String,
    }

    fn to_hub(value: Text) -> Result<Hub, String> {
        Err(format!("{:?} is no hub", value.text))
    }

    fn from_hub(hub: Hub) -> Text {
        Text {
            text: hub.seconds.to_string(),
        }
    }

    let spoke = Spoke {
        seconds: "5s".to_owned(),
        count: 200,
        sizes: vec![1, -1],
        limit: 3,
    };
    let hub = Hub {
        seconds: 5,
        count: 200,
        sizes: vec![1, -1],
        limit: 3,
    };
    assert_eq!(Hub::convert_from(spoke.clone()), Ok(hub.clone()));
    let error = |result: Result<Hub, ConvertError>| result.unwrap_err().to_string();
    let soon = Spoke {
        seconds: "soon".to_owned(),
        ..spoke
    };
    assert_eq!(
        error(Hub::convert_from(soon)),
        "seconds: \"soon\" is not a number of seconds"
    );
    let text = Text {
        text: "x".to_owned(),
    };
    assert_eq!(error(Hub::convert_from(text)), "\"x\" is no hub");
    assert_eq!(Text::convert_from(hub.clone()).unwrap().text, "5");

    let back = |hub: Hub| Spoke::convert_from(hub).unwrap_err().to_string();
    assert_eq!(back(hub.clone()), "limit: never fits");
    let many = Hub {
        count: 300,
        ..hub.clone()
    };
    assert_eq!(
        back(many),
        "count: out of range integral type conversion attempted"
    );
    let large = Hub {
        sizes: vec![40_000],
        ..hub
    };
    assert_eq!(
        back(large),
        "sizes: out of range integral type conversion attempted"
    );
}

fn conversion<K: Resource>() -> Conversion {
    K::definition().conversion.expect("the kind is a spoke")
}

fn functions<K: Resource>() -> InMemoryConversion {
    *conversion::<K>().in_memory().expect("in memory")
}

fn spoke() -> Value {
    json!({
        "metadata": {"name": "b", "futureField": 1},
        "spec": {"minutes": 2, "oldName": "n", "forgotten": 3, "mode": "Odd"},
        "parts": [{"size": "1"}], "byName": {"k": {"size": "2"}}, "maybe": {"size": "3"}, "comment": "c",
    })
}

#[test]
fn a_spoke_becomes_its_hub() {
    let to_hub = functions::<v1alpha1::Box>().to_hub;
    let hub = json!({
        "metadata": {"name": "b", "futureField": 1},
        "spec": {"seconds": 120, "newName": "n", "onlyHere": true, "mode": "Odd"},
        "parts": [{"size": 1}], "byName": {"k": {"size": 2}}, "maybe": {"size": 3}, "note": "c",
    });
    assert_eq!(to_hub(spoke()), Ok(hub));
}

#[test]
fn a_hub_becomes_its_spoke() {
    let InMemoryConversion {
        to_hub, from_hub, ..
    } = functions::<v1alpha1::Box>();
    let mut expected = spoke();
    expected["spec"]["forgotten"] = json!(7);
    assert_eq!(to_hub(spoke()).and_then(from_hub), Ok(expected));
}

#[test]
fn an_error_names_the_field() {
    let to_hub = functions::<v1alpha1::Box>().to_hub;
    let mut bad = spoke();
    bad["byName"]["k"]["size"] = json!("big");
    assert_eq!(
        to_hub(bad),
        Err(r#"byName["k"].size: not a number"#.to_owned())
    );
}

#[test]
fn the_hub_is_named_by_version_and_kind() {
    let Conversion {
        hub_version,
        hub_kind,
        hub_resource,
        ..
    } = conversion::<wardle::v1alpha1::Flunder>();
    assert_eq!(hub_resource, None);
    assert_eq!((&*hub_version, &*hub_kind), ("v1beta1", "Flunder"));
}

#[test]
fn wardle_converts_by_reference_type() {
    let InMemoryConversion {
        to_hub, from_hub, ..
    } = functions::<wardle::v1alpha1::Flunder>();
    let check = |spoke: Value, hub: Value| {
        let object = |spec: &Value| json!({"metadata": {"name": "f"}, "spec": spec});
        assert_eq!(to_hub(object(&spoke)), Ok(object(&hub)));
        assert_eq!(from_hub(object(&hub)), Ok(object(&spoke)));
    };
    check(json!({}), json!({}));
    check(
        json!({"reference": "a", "referenceType": "Flunder"}),
        json!({"flunderReference": "a", "referenceType": "Flunder"}),
    );
    check(
        json!({"reference": "a", "referenceType": "Fischer"}),
        json!({"fischerReference": "a", "referenceType": "Fischer"}),
    );
}

#[test]
fn a_status_subresource_type_is_shared_between_versions() {
    let to_hub = functions::<wardle::v1alpha1::Flunder>().to_hub;
    let object = json!({"metadata": {}, "spec": {}, "status": {}});
    assert_eq!(to_hub(object.clone()), Ok(object));
}

/// The results of both conversions of a document: as an object that is encoded, and directly as JSON.
fn check_both_ways<K: Resource, H: Resource>(spoke: &Value) {
    let conversion = functions::<K>();
    let json = conversion.json.expect("derived conversions have it");
    let schema = |def: ResourceDef| def.schema.schema().expect("structural");
    let (of_spoke, of_hub) = (schema(K::definition()), schema(H::definition()));
    let encoded = |document: Result<Value, String>, schema: &Schema| {
        let mut object = Object::from_value(document?).expect("an object");
        object.fields_mut().remove("metadata");
        Ok::<_, String>(Encoder::of(schema).object(&object).to_vec())
    };
    let at_once = |convert: ConvertJson, document: &Value, schema: &Schema| {
        let mut out = Vec::new();
        convert(document.to_string().as_bytes(), schema, &mut out).map(|()| out)
    };
    let hub = (conversion.to_hub)(spoke.clone());
    let there = at_once(json.to_hub, spoke, &of_hub);
    match &hub {
        Err(_) => assert!(there.is_err(), "{spoke}"),
        Ok(hub) => {
            assert_eq!(there, encoded(Ok(hub.clone()), &of_hub), "{spoke}");
            let back = at_once(json.from_hub, hub, &of_spoke);
            assert_eq!(
                back,
                encoded((conversion.from_hub)(hub.clone()), &of_spoke),
                "{hub}"
            );
        }
    }
}

#[test]
fn both_ways_of_a_conversion_give_the_same_bytes() {
    let check = check_both_ways::<v1alpha1::Box, v1::Box>;
    check(&spoke());
    for (path, value) in [
        ("/spec/mode", json!("<&>\u{2028}\"")),
        ("/spec/minutes", json!(i32::MAX)),
        ("/spec/forgotten", Value::Null),
        ("/parts", json!([])),
        (
            "/byName",
            json!({"z": {"size": "1"}, "a\"b": {"size": "2"}, "": {"size": "-3"}}),
        ),
        ("/maybe", Value::Null),
        ("/comment", json!("")),
        ("/parts/0/size", json!("no number")),
        ("/spec/minutes", json!("no number")),
        ("/spec", json!({})),
        (
            "/metadata",
            json!({"annotations": {"n": "v"}, "futureField": [1.0], "generation": 3}),
        ),
    ] {
        let mut odd = spoke();
        *odd.pointer_mut(path).expect("the path exists") = value;
        check(&odd);
        odd["unknown"] = json!({"kept": "nowhere"});
        check(&odd);
    }
    let check = check_both_ways::<wardle::v1alpha1::Flunder, wardle::v1beta1::Flunder>;
    for spec in [
        json!({}),
        json!({"reference": "a", "referenceType": "Flunder"}),
        json!({"reference": "a", "referenceType": "Fischer"}),
        json!({"reference": "a", "referenceType": "Other"}),
        Value::Null,
    ] {
        check(&json!({"metadata": {"name": "f"}, "spec": spec}));
        check(&json!({"metadata": {"name": "f"}, "spec": spec, "status": {}}));
    }
    check(&json!({"metadata": {}}));
}

pub mod odd {
    use apiloom::prelude::*;

    pub mod hub {
        use apiloom::prelude::*;
        use std::collections::{BTreeMap, HashMap};

        #[apiloom::resource(group = "example.com", version = "v1", namespaced, hub)]
        pub struct Odd {
            pub metadata: ObjectMeta,
            pub zeta: Option<Inner>,
            pub alpha: Vec<Inner>,
            pub hashed: HashMap<String, Inner>,
            pub ordered: BTreeMap<String, i64>,
            pub free: Option<serde_json::Value>,
            pub size: Option<Quantity>,
            pub either: Option<IntOrString>,
            pub at: Option<Time>,
            pub single: Option<f32>,
            pub double: Option<f64>,
            pub large: Option<u64>,
            pub choice: Option<Choice>,
        }

        #[apiloom::api]
        pub struct Inner {
            pub zulu: Option<String>,
            pub alfa: Option<i32>,
            pub nested: Option<Deep>,
        }

        #[apiloom::api]
        pub struct Deep {
            pub zulu: Option<String>,
            pub alfa: Option<i32>,
        }

        #[apiloom::api]
        pub enum Choice {
            Text(String),
            Inner(Inner),
        }
    }

    pub use hub::{Choice, Inner};

    #[apiloom::resource(group = "example.com", version = "v1alpha1", namespaced, storage, spoke_of = hub::Odd)]
    pub struct Odd {
        pub metadata: ObjectMeta,
        pub choice: Option<Choice>,
        pub large: Option<u64>,
        pub double: Option<f64>,
        pub single: Option<f32>,
        pub at: Option<Time>,
        pub either: Option<IntOrString>,
        pub size: Option<Quantity>,
        pub free: Option<serde_json::Value>,
        pub ordered: std::collections::BTreeMap<String, i64>,
        pub hashed: std::collections::HashMap<String, Inner>,
        pub alpha: Vec<Inner>,
        pub zeta: Option<Inner>,
    }
}

#[test]
fn both_ways_of_a_conversion_agree_on_odd_values() {
    let check = |fields: Value| {
        let mut document = json!({"metadata": {"name": "o"}});
        document
            .as_object_mut()
            .expect("an object")
            .extend(fields.as_object().expect("an object").clone());
        check_both_ways::<odd::Odd, odd::hub::Odd>(&document);
    };
    let inner = json!({"nested": {"zulu": "<z>", "alfa": -1}, "alfa": 1, "unknown": 2});
    let hashed: Value = (0..30).map(|n| (format!("k{n}"), inner.clone())).collect();
    check(
        json!({"zeta": inner, "alpha": [inner, {}], "hashed": hashed, "ordered": {"z": 1, "a": i64::MIN}}),
    );
    check(
        json!({"free": {"z": [1.0, 1e300, null, {"b": 1, "a": "\u{2029}"}], "a": {}}, "size": "1500m", "either": 80}),
    );
    check(
        json!({"either": "80%", "at": "2023-11-14T22:08:20Z", "large": u64::MAX, "double": 1e-7, "single": 0.1}),
    );
    check(
        json!({"size": "0.5Gi", "double": 3.0, "single": 1.5e-10, "free": "text", "choice": {"text": "x"}}),
    );
    check(json!({"choice": {"inner": inner}, "free": [], "hashed": {}, "double": -0.0}));
    check(json!({"choice": {"wrong": 1}}));
    check(json!({"size": "much"}));
}

#[test]
#[should_panic(expected = "the hub is told something else")]
fn a_conversion_that_drifts_is_found() {
    // Inside a function, so that its generated test does not run.
    mod versions {
        pub(super) mod v1 {
            use apiloom::prelude::*;

            #[apiloom::resource(group = "example.com", version = "v1", namespaced, hub, storage)]
            pub struct Clock {
                pub metadata: ObjectMeta,
                pub seconds: i64,
            }
        }

        pub(super) mod v1alpha1 {
            use super::v1;
            use apiloom::prelude::*;

            #[apiloom::resource(group = "example.com", version = "v1alpha1", namespaced, spoke_of = v1::Clock)]
            pub struct Clock {
                pub metadata: ObjectMeta,
                #[api(convert(rename = seconds, with = (|minutes| minutes * 60, |seconds| seconds / 60 + 1)))]
                pub minutes: i64,
            }
        }
    }
    apiloom::testing::check_conversion::<versions::v1alpha1::Clock, versions::v1::Clock>();
}
