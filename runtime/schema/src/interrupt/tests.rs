//! Scopes and deadlines.

use super::*;

#[test]
fn a_deadline_interrupts_work_that_has_begun() {
    let interrupt = Interrupt::default();
    let steps = interrupt.scope(|| {
        assert!(!is_interrupted());
        interrupt.set_after(Duration::ZERO);
        (0..u64::from(2 * INTERVAL))
            .take_while(|_| !is_interrupted())
            .count()
    });
    assert!(steps <= INTERVAL as usize, "{steps}");
    assert!(interrupt.is_set());
}

#[test]
fn a_later_deadline_does_not_take_the_place_of_an_earlier_one() {
    let interrupt = Interrupt::default();
    interrupt.set_after(Duration::ZERO);
    interrupt.set_after(Duration::from_secs(60));
    interrupt.set_after(Duration::MAX);
    assert!(interrupt.is_set());
}

#[test]
fn scopes_are_nested_and_end() {
    let interrupt = Interrupt::default();
    interrupt.set();
    interrupt.scope(|| {
        assert!(is_interrupted());
        assert!(!apart(is_interrupted));
        assert!(is_interrupted());
        let inherited = current();
        let other = std::thread::spawn(|| within(inherited, is_interrupted));
        assert!(other.join().unwrap());
    });
    assert!(!is_interrupted() && current().is_none());
}

#[test]
fn a_panic_ends_the_scope() {
    let interrupt = Interrupt::default();
    let panicked = std::panic::catch_unwind(|| interrupt.scope(|| panic!("in the scope")));
    assert!(panicked.is_err() && current().is_none());
}
