//! Bounds leave some value.

#[apiloom::api]
pub struct Part {
    #[api(len = 9..=1, bytes(min = 3, max = 2))]
    pub name: String,
    #[api(min = 5, max = -5)]
    pub number: i32,
    #[api(gt = 1.5, lt = 1.5)]
    pub float: f64,
}

fn main() {}
