//! What the members of an entry may be, beside its fields.

use crate::field::is_printable;

/// Maximum length of the name of a field manager, in bytes.
pub const FIELD_MANAGER_MAX_BYTES: usize = 128;
/// Maximum length of the subresource of an entry, in bytes.
pub(crate) const SUBRESOURCE_MAX_BYTES: usize = 256;

/// Whether the name of a field manager is valid: at most 128 bytes of printable characters. An empty name means absent.
pub(crate) fn is_field_manager(manager: &str) -> bool {
    manager.len() <= FIELD_MANAGER_MAX_BYTES && manager.chars().all(is_printable)
}
