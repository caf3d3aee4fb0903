//! Audiences of tokens: for whom they are.

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
