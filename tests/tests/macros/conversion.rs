//! Conversion between versions: what moves by itself, what is said, both ways.

use apiloom::meta::kind::Conversion;
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

fn conversion<K: Resource>() -> Conversion {
    K::definition().conversion.expect("the kind is a spoke")
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
    let to_hub = conversion::<v1alpha1::Box>().to_hub;
    let hub = json!({
        "metadata": {"name": "b", "futureField": 1},
        "spec": {"seconds": 120, "newName": "n", "onlyHere": true, "mode": "Odd"},
        "parts": [{"size": 1}], "byName": {"k": {"size": 2}}, "maybe": {"size": 3}, "note": "c",
    });
    assert_eq!(to_hub(spoke()), Ok(hub));
}

#[test]
fn a_hub_becomes_its_spoke() {
    let Conversion {
        to_hub, from_hub, ..
    } = conversion::<v1alpha1::Box>();
    let mut expected = spoke();
    expected["spec"]["forgotten"] = json!(7);
    assert_eq!(to_hub(spoke()).and_then(from_hub), Ok(expected));
}

#[test]
fn an_error_names_the_field() {
    let to_hub = conversion::<v1alpha1::Box>().to_hub;
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
        ..
    } = conversion::<wardle::v1alpha1::Flunder>();
    assert_eq!((hub_version, hub_kind), ("v1beta1", "Flunder"));
}

#[test]
fn wardle_converts_by_reference_type() {
    let Conversion {
        to_hub, from_hub, ..
    } = conversion::<wardle::v1alpha1::Flunder>();
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
    let to_hub = conversion::<wardle::v1alpha1::Flunder>().to_hub;
    let object = json!({"metadata": {}, "spec": {}, "status": {}});
    assert_eq!(to_hub(object.clone()), Ok(object));
}
