//! Byte strings that live as long as the model.

use dllm_arena::{ByteTable, TableFull};

#[test]
fn entries_come_back_in_order() {
    let entry = |at: usize| format!("blk.{at}.attn_q.weight").into_bytes();
    let mut table = ByteTable::new(1 << 20);
    assert!(table.is_empty());
    for at in 0..2000 {
        assert_eq!(table.push(&entry(at)), Ok(at as u32));
    }
    // The same again, nothing, and what is no text are entries like any other.
    for (index, bytes) in [(2000, &entry(7)[..]), (2001, b""), (2002, b"\xff\0\xfe")] {
        assert_eq!(table.push(bytes), Ok(index));
        assert_eq!(table.get(index), bytes);
    }
    table.seal();
    assert_eq!(table.len(), 2003);
    assert_eq!(table.iter().len(), 2003);
    assert!(table.iter().take(2000).enumerate().all(|(at, bytes)| bytes == entry(at)));
    // Sealed, it may move to another thread and be read by several.
    let table = std::thread::spawn(move || table).join().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert!((0..2000).all(|at| table.get(at) == entry(at as usize))));
        }
    });
    assert!(table.bytes() >= table.iter().map(<[u8]>::len).sum());
}

#[test]
fn nothing_is_added_once_sealed() {
    let mut table = ByteTable::new(1 << 16);
    table.push(b"output.weight").unwrap();
    table.seal();
    let bytes = table.bytes();
    for more in [&b""[..], b"x", b"output.weight", &[7; 5000]] {
        assert_eq!(table.push(more), Err(TableFull::Sealed));
    }
    assert_eq!((table.len(), table.get(0), table.bytes()), (1, &b"output.weight"[..], bytes));
}

#[test]
fn the_limit_holds() {
    for limit_bytes in [1, 100, 600, 10_000, 1 << 20] {
        let mut table = ByteTable::new(limit_bytes);
        let full = (0..).find_map(|at: u32| table.push(&[at as u8; 100]).err()).unwrap();
        assert_eq!(full, TableFull::Limit { limit_bytes });
        assert!(full.to_string().contains(&limit_bytes.to_string()));
        assert!(table.bytes() <= limit_bytes);
        // A refusal leaves what was there as it was.
        assert!(table.iter().enumerate().all(|(at, bytes)| bytes == [at as u8; 100]));
        assert!(table.push(&vec![0; 2 * limit_bytes]).is_err());
    }
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn an_entry_that_is_not_there_panics() {
    ByteTable::new(100).get(0);
}
