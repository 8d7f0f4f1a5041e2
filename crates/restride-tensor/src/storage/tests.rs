use super::*;
use std::sync::atomic::AtomicBool;

#[test]
fn readers_keep_the_writer_away_and_the_other_way_round() {
    let s = Storage::zeroed(8);
    let (a, b) = (s.lock(false).unwrap(), s.lock(false).unwrap());
    assert_eq!(s.try_write(&[1]), Err(AccessError::Read));
    assert_eq!(s.grow(100), Err(AccessError::Read));
    drop((a, b));
    let w = s.lock(true).unwrap();
    assert_eq!(s.lock(false).err(), Some(AccessError::Written));
    assert_eq!(s.lock(true).err(), Some(AccessError::Written));
    drop(w);
    s.write(&[1, 2]);
    assert_eq!(s.to_vec(), [1, 2, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn shared_bytes_are_copied_by_the_first_writer() {
    let bytes = Bytes::copy_of(&[1, 2, 3]);
    let (a, b) = (Storage::from_bytes(bytes.clone()), Storage::from_bytes(bytes));
    assert_eq!(a.address(), b.address());
    a.write(&[9]);
    assert_ne!(a.address(), b.address());
    assert_eq!((a.to_vec(), b.to_vec()), (vec![9, 2, 3], vec![1, 2, 3]));
    b.grow(5).unwrap();
    assert_eq!(b.to_vec(), [1, 2, 3, 0, 0]);
}

#[test]
fn what_is_pinned_stays_where_it_is() {
    let s = Storage::from_bytes(Bytes::copy_of(&[1, 2, 3]));
    let reading = s.lock(false).unwrap();
    assert_eq!(s.pin(), Err(AccessError::Read));
    drop(reading);
    let at = s.pin().unwrap();
    let reading = s.lock(false).unwrap();
    assert_eq!(s.pin(), Ok(at));
    drop(reading);
    let writing = s.lock(true).unwrap();
    assert_eq!(s.pin(), Ok(at));
    drop(writing);
    s.write(&[9]);
    assert_eq!((s.grow(100), s.address()), (Err(AccessError::Fixed), at));
    assert_eq!(s.to_vec(), [9, 2, 3]);
}

#[test]
fn foreign_memory_is_written_where_it_is_and_given_back_once() {
    let mut there = vec![5u8; 32];
    let (start, gone) = (there.as_mut_ptr(), Arc::new(AtomicBool::new(false)));
    let told = gone.clone();
    // SAFETY: the vector outlives the storage, and is not touched meanwhile.
    let s = unsafe { Storage::foreign(start, 32, true, move || assert!(!told.swap(true, Ordering::SeqCst))) };
    let other = s.clone();
    std::thread::spawn(move || other.write(&[1, 2])).join().unwrap();
    assert_eq!(s.address(), start);
    assert_eq!(s.grow(33), Err(AccessError::Fixed));
    assert!(!gone.load(Ordering::SeqCst));
    drop(s);
    assert!(gone.load(Ordering::SeqCst));
    assert_eq!(there[..3], [1, 2, 5]);
}

#[test]
fn what_was_given_for_reading_is_not_written() {
    let mut there = [5u8; 8];
    // SAFETY: the array outlives the storage, and is not touched meanwhile.
    let s = unsafe { Storage::foreign(there.as_mut_ptr(), 8, false, || {}) };
    assert!(s.is_read_only() && !Storage::zeroed(1).is_read_only());
    assert_eq!(s.try_write(&[1]), Err(AccessError::ReadOnly));
    assert_eq!(s.to_vec(), [5; 8]);
    drop(s);
    assert_eq!(there, [5; 8]);
}

#[test]
fn owners_are_kept() {
    let s = Storage::from_owner(vec![1u8, 2, 3]);
    let other = s.clone();
    drop(s);
    other.write(&[7]);
    assert_eq!(other.to_vec(), [7, 2, 3]);
    assert!(Storage::from_owner([0u8; 0]).is_empty());
    // An empty tensor of any type is on it.
    assert!((Storage::from_owner(Vec::new()).address() as usize).is_multiple_of(16));
    assert!(Storage::from_owner([0u8; 4]).lock(true).is_ok());
}

#[test]
fn storages_on_the_same_foreign_bytes_meet() {
    let mut there = [0u8; 32];
    let start = there.as_mut_ptr();
    // SAFETY: the array outlives the storages; nothing is read or written.
    let part = |at: usize, n: usize| unsafe { Storage::foreign(start.add(at), n, true, || {}) };
    let (a, b, c) = (part(0, 16), part(8, 16), part(16, 16));
    assert!(a.meets(&b) && b.meets(&c) && !a.meets(&c) && a.meets(&a.clone()));
    assert!(!a.meets(&Storage::zeroed(0)));
}

#[test]
fn memory_that_there_is_not_is_an_error() {
    assert!(Storage::try_zeroed(usize::MAX).is_err());
    assert_eq!(Storage::zeroed(8).grow(usize::MAX - 10), Err(AccessError::NoMemory(usize::MAX - 10)));
}

/// Two threads write where neither reads before it may: under a thread checker this is where a missing order would show.
#[test]
fn what_a_writer_leaves_the_next_one_sees() {
    let s = Storage::zeroed(8);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut done = 0;
                while done < 50 {
                    if let Ok(lock) = s.lock(true) {
                        // SAFETY: the lock is for writing, and there are eight bytes, aligned to 64.
                        unsafe {
                            let at = lock.start().cast::<u64>();
                            at.write(at.read() + 1);
                        }
                        done += 1;
                    }
                    std::thread::yield_now();
                }
            });
        }
        scope.spawn(|| {
            for n in 1..20 {
                let _ = s.grow(8 * n);
                std::thread::yield_now();
            }
        });
    });
    assert_eq!(s.to_vec()[..8], 100u64.to_le_bytes());
}

#[test]
fn contents_are_the_same_until_they_are_written() {
    let file = Bytes::copy_of(&[1u8; 64]);
    let (a, b) = (Storage::from_bytes(file.clone()), Storage::from_bytes(file));
    let (of_a, of_b) = (a.contents().unwrap(), b.contents().unwrap());
    assert!(of_a.are_in(&a) && !of_a.are_in(&b) && of_a.same(&of_b));
    a.write(&[2]);
    assert!(!of_a.are_in(&a) && of_b.are_in(&b));
    let written = a.contents().unwrap();
    assert!(!written.same(&of_a) && !written.same(&of_b) && written.same(&a.contents().unwrap()));
    a.write(&[3]);
    assert!(!written.are_in(&a) && !written.same(&a.contents().unwrap()));
    // Others may write what is theirs.
    assert!(Storage::from_owner(vec![0u8; 64]).contents().is_none());
    b.pin().unwrap();
    assert!(!of_b.are_in(&b) && b.contents().is_none());
    let lock = a.lock(true).unwrap();
    assert!(a.contents().is_none());
    drop(lock);
}
