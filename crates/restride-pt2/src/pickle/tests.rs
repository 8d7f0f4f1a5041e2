use super::*;
use crate::archive::{Archive, Payload};
use crate::dtype::FileDType;
use crate::zip::{Compression, ZipWriter};
use std::path::PathBuf;

fn fixture(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn save(pickle: &[u8], storages: &[(&str, &[u8])], c: Compression) -> Vec<u8> {
    let mut w = ZipWriter::new(Vec::new());
    w.add("archive/data.pkl", pickle, c).unwrap();
    for (key, bytes) in storages {
        w.add(&format!("archive/data/{key}"), bytes, c).unwrap();
    }
    w.finish().unwrap()
}

fn run(pickle: &[u8]) -> Result<PickleValue> {
    load(&save(pickle, &[], Compression::Stored)).map(|f| f.value)
}

/// A pickle of one f32 tensor in storage "0", the numbers all below 256.
fn tensor_pickle(count: u8, offset: u8, sizes: &[u8], strides: &[u8]) -> Vec<u8> {
    let mut p = b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK".to_vec();
    p.push(count);
    p.extend(b"tQK");
    p.push(offset);
    for list in [sizes, strides] {
        p.push(b'(');
        list.iter().for_each(|&n| p.extend([b'K', n]));
        p.push(b't');
    }
    p.extend(b"\x89ccollections\nOrderedDict\n)RtR.");
    p
}

#[test]
fn sample_inputs_of_all_layouts() {
    for file in ["torch-2.15.pt2", "torch-2.8.pt2", "torch-2.6.pt2"] {
        let bytes = fixture(file);
        let a = Archive::open(&bytes).unwrap();
        let inner = a.read(&a.sample_inputs_path("model").unwrap()).unwrap();
        let saved = load(&inner).unwrap();
        let PickleValue::Tuple(top) = &saved.value else { panic!("{saved:?}") };
        let [PickleValue::Tuple(args), PickleValue::Dict(kwargs)] = top.as_slice() else { panic!("{top:?}") };
        assert!(kwargs.is_empty());
        let [PickleValue::Tensor(x), PickleValue::Float(k), d] = args.as_slice() else { panic!("{args:?}") };
        assert_eq!((&*x.sizes, *k), (&[3i64, 4][..], 2.5));
        let Some(PickleValue::Tensor(z)) = d.get("z") else { panic!("{d:?}") };
        assert_eq!((z.dtype, &*z.strides), (FileDType::F32, &[1i64, 2][..]));
        let values = saved.storage_bytes(&inner, &z.storage).unwrap();
        let expected: Vec<u8> = (0..4).flat_map(|i| (i as f32).to_le_bytes()).collect();
        assert_eq!(values, expected);
    }
}

#[test]
fn pickled_weights() {
    for file in ["torch-2.8.pt2", "torch-2.6.pt2"] {
        let bytes = fixture(file);
        let a = Archive::open(&bytes).unwrap();
        let tensor = |payload, name: &str| {
            let path = a.pickled_payload_path("model", payload).unwrap();
            let saved = load(&a.read(&path).unwrap()).unwrap();
            match saved.value.get(name) {
                Some(PickleValue::Tensor(t)) => PickleTensor::clone(t),
                other => panic!("{name}: {other:?}"),
            }
        };
        let tied = [tensor(Payload::Weights, "l.weight"), tensor(Payload::Weights, "t.weight")];
        assert_eq!(tied[0], tied[1]);
        assert!(tied[0].is_parameter && tied[0].requires_grad);
        let view = tensor(Payload::Weights, "v");
        assert_eq!((&*view.sizes, &*view.strides, view.offset), (&[3i64][..], &[2i64][..], 2));
        assert!(!view.is_parameter);
        assert_eq!(tensor(Payload::Constants, "np").dtype, FileDType::BF16);
    }
}

#[test]
fn plain_values() {
    use PickleValue as V;
    // Python 3: pickle.dumps((None, True, 1, -2, 2**40, 0.5, 'é', b'ab', [1, (2,)], {'a': 1, 2: {3}}), 4)
    let p4: &[u8] = b"\x80\x04\x95B\x00\x00\x00\x00\x00\x00\x00(N\x88K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01G?\xe0\x00\x00\x00\x00\x00\x00\x8c\x02\xc3\xa9\x94C\x02ab\x94]\x94(K\x01K\x02\x85\x94e}\x94(\x8c\x01a\x94K\x01K\x02\x8f\x94(K\x03\x90ut\x94.";
    let expected = V::Tuple(vec![
        V::None,
        V::Bool(true),
        V::Int(1),
        V::Int(-2),
        V::Int(1 << 40),
        V::Float(0.5),
        V::Str("é".into()),
        V::Bytes(b"ab"[..].into()),
        V::List(vec![V::Int(1), V::Tuple(vec![V::Int(2)])]),
        V::Dict(vec![(V::Str("a".into()), V::Int(1)), (V::Int(2), V::Set(vec![V::Int(3)]))]),
    ]);
    assert_eq!(run(p4).unwrap(), expected);
    for n in 0..p4.len() {
        assert!(run(&p4[..n]).is_err());
    }
    assert_eq!(run(b"ctorch\nSize\n(K\x02K\x03t\x85R.").unwrap(), V::Size(vec![2, 3]));
    assert_eq!(run(b"ctorch\nint32\n.").unwrap(), V::DType(FileDType::I32));
    assert_eq!(
        run(b"ctorch\ndevice\nX\x06\0\0\0cuda:1\x85R.").unwrap(),
        V::Device { kind: "cuda".to_string(), index: Some(1) }
    );
    assert_eq!(run(b"c__builtin__\ncomplex\nG?\xe0\0\0\0\0\0\0K\x02\x86R.").unwrap(), V::Complex(0.5, 2.0));
    assert_eq!(
        run(b"c_codecs\nencode\nX\x02\0\0\0\xc3\xbfX\x06\0\0\0latin1\x86R.").unwrap(),
        V::Bytes([0xff][..].into())
    );
    // A key that comes twice keeps its first place and its last value.
    assert_eq!(
        run(b"}(K\x01K\x01K\x02K\x02K\x01K\x03u.").unwrap(),
        V::Dict(vec![(V::Int(1), V::Int(3)), (V::Int(2), V::Int(2))])
    );
}

#[test]
fn nothing_is_executed() {
    let value = run(b"cos\nsystem\nX\x04\0\0\0true\x85R.").unwrap();
    let PickleValue::Opaque { class, args } = value else { panic!("{value:?}") };
    assert_eq!((&*class, args.len()), ("os.system", 1));
    let value = run(b"cmy.mod\nThing\n)\x81}X\x01\0\0\0aK\x01sb.").unwrap();
    assert_eq!(value.kind(), "an object of a class that is not known");
}

#[test]
fn tensors_are_checked_against_their_storage() {
    let data: Vec<u8> = (0..6).flat_map(|i| (i as f32).to_le_bytes()).collect();
    for c in [Compression::Stored, Compression::Deflated] {
        let file = save(&tensor_pickle(6, 1, &[2, 2], &[3, 1]), &[("0", &data)], c);
        let saved = load(&file).unwrap();
        assert_eq!(saved.storage_bytes(&file, "0").unwrap(), data);
        assert!(matches!(&saved.value, PickleValue::Tensor(t) if t.offset == 1));
    }
    let fails = |pickle: &[u8], what: &str| {
        let e = load(&save(pickle, &[("0", &data)], Compression::Stored)).unwrap_err();
        assert!(e.to_string().contains(what), "{e}");
    };
    fails(&tensor_pickle(6, 2, &[2, 2], &[3, 1]), "needs 7 elements");
    fails(&tensor_pickle(7, 0, &[7], &[1]), "it has 24");
    fails(&tensor_pickle(6, 0, &[2, 2], &[1]), "2 sizes but 1 strides");
    let e = load(&save(&tensor_pickle(6, 0, &[], &[]), &[], Compression::Stored)).unwrap_err();
    assert!(e.to_string().contains("archive/data/0: not in the file"), "{e}");
}

#[test]
fn truncated_and_flipped_pickles_never_panic() {
    let data = [0u8; 24];
    let good = tensor_pickle(6, 1, &[2, 2], &[3, 1]);
    for n in 0..good.len() {
        assert!(load(&save(&good[..n], &[("0", &data)], Compression::Stored)).is_err());
    }
    for i in 0..good.len() {
        for v in 0..=255 {
            let mut bad = good.clone();
            bad[i] = v;
            let _ = load(&save(&bad, &[("0", &data)], Compression::Stored));
        }
    }
    let file = save(&good, &[("0", &data)], Compression::Stored);
    for n in 0..file.len() {
        assert!(load(&file[..n]).is_err());
    }
}

#[test]
fn harmful_programs_are_refused() {
    // Every level holds the one before twice: 2^60 values from a few hundred bytes.
    let mut lols = b"]".to_vec();
    for _ in 0..60 {
        lols.extend(b"2\x86");
    }
    lols.push(b'.');
    assert!(run(&lols).unwrap_err().to_string().contains("far more objects"));
    // A long tuple, passed on and on.
    let call = b"h\0h\x01R0";
    let copies = [&b"cos\nsystem\nq\0("[..], &[b'N'; 20_000], b"tq\x01", &call.repeat(5_000), b"."].concat();
    let e = run(&copies).map(|v| v.kind()).unwrap_err();
    assert!(e.to_string().contains("far more work"), "{e}");
    // A list that contains itself.
    assert!(run(b"]q\0h\0a.").unwrap_err().to_string().contains("deep"));
    let deep = [vec![b')'; 1], vec![0x85; 100_000], b".".to_vec()].concat();
    assert!(run(&deep).unwrap_err().to_string().contains("deep"));
    for bad in [
        &b"r\xff\xff\xff\xff."[..],
        b"Nr\xff\xff\xff\xff.",
        b"h\0.",
        b"t.",
        b"(.",
        b"0.",
        b"NR.",
        b"NNR.",
        b"N)R.",
        b"Nb.",
        b"}]Ns.",
        b"X\xff\xff\xff\xffa.",
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\xffa.",
        b"\x80\x06N.",
        b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x01.",
        b"NQ.",
        b"I1\n.",
        b"",
    ] {
        assert!(run(bad).is_err(), "{bad:?}");
    }
    assert!(load(b"\x80\x02N.").unwrap_err().to_string().contains("torch.save"));
}
