//! serde and schemars attributes that work against ours are refused.

#[apiloom::api]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub struct Part {
    #[serde(default, rename = "x")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    #[schemars(default)]
    pub third: i32,
}

fn main() {}
