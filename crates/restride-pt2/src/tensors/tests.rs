use super::*;
use std::path::PathBuf;

fn fixture_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

fn tensor(t: &NamedTensors, name: &str) -> FileTensor {
    match t.get(name) {
        Some(Item::Tensor(t)) => t.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

fn floats(t: &NamedTensors, name: &str) -> Vec<f32> {
    let raw = tensor(t, name);
    assert_eq!(raw.dtype, FileDType::F32);
    t.contiguous_bytes(&raw).unwrap().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// Two tensors on one storage, one of them transposed and one expanded, and a number.
fn shared() -> NamedTensors {
    let mut t = NamedTensors::default();
    let data: Vec<u8> = (0..6).flat_map(|i| (i as f32).to_le_bytes()).collect();
    t.push_contiguous("a", FileDType::F32, vec![2, 3], data);
    for (name, sizes, strides, offset) in
        [("t", vec![3, 2], vec![1, 3], 0), ("e", vec![2, 1, 2], vec![0, i64::MAX, 1], 4)]
    {
        t.items.push(NamedItem {
            name: Some(name.to_string()),
            value: Item::Tensor(FileTensor { dtype: FileDType::F32, sizes, strides, offset, storage: 0 }),
        });
    }
    t.items.push(NamedItem { name: Some("n".to_string()), value: Item::Scalar(FileScalar::Int(7)) });
    t
}

#[test]
fn numpys_own_files() {
    let plain = read_file(&fixture_path("numpy.npz")).unwrap();
    let packed = read_file(&fixture_path("numpy_compressed.npz")).unwrap();
    assert_eq!(plain, packed);
    assert_eq!(floats(&plain, "f32"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let bytes = |name: &str| plain.contiguous_bytes(&tensor(&plain, name)).unwrap().into_owned();
    let six = 0..6i32;
    assert_eq!(bytes("big"), six.clone().flat_map(i32::to_le_bytes).collect::<Vec<_>>());
    let complex: Vec<u8> = six.clone().flat_map(|i| [i as f32, 1.0]).flat_map(f32::to_le_bytes).collect();
    assert_eq!(bytes("big_complex"), complex);
    let fortran = tensor(&plain, "fortran");
    assert_eq!((&*fortran.sizes, &*fortran.strides), (&[2i64, 3][..], &[1i64, 2][..]));
    assert_eq!(bytes("fortran"), (0..6i64).flat_map(i64::to_le_bytes).collect::<Vec<_>>());
    assert_eq!(bytes("bool"), [1, 0, 1, 0, 1, 0]);
    assert_eq!(tensor(&plain, "scalar").sizes, [0i64; 0]);
    assert_eq!(bytes("scalar"), 7i64.to_le_bytes());
    assert_eq!(tensor(&plain, "empty").sizes, [0, 3]);
    assert_eq!(tensor(&plain, "c128").dtype, FileDType::C128);
}

#[test]
fn hugging_faces_own_file() {
    let npz = read_file(&fixture_path("numpy.npz")).unwrap();
    let st = read_file(&fixture_path("numpy.safetensors")).unwrap();
    assert_eq!(st.items.len(), 7);
    for item in &st.items {
        let name = item.name.as_deref().unwrap();
        let (a, b) = (tensor(&npz, name), tensor(&st, name));
        assert_eq!((a.dtype, &a.sizes), (b.dtype, &b.sizes));
        assert_eq!(npz.contiguous_bytes(&a), st.contiguous_bytes(&b));
    }
}

#[test]
fn views_are_written_row_by_row() {
    let t = shared();
    for format in [Format::Npz, Format::Safetensors] {
        let bytes = write(format, &t).unwrap();
        assert_eq!(bytes, write(format, &t).unwrap());
        let back = read(format, &bytes).unwrap();
        assert_eq!(floats(&back, "a"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(floats(&back, "t"), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(floats(&back, "e"), [4.0, 5.0, 4.0, 5.0]);
        assert_eq!(tensor(&back, "e").sizes, [2, 1, 2]);
        let n = tensor(&back, "n");
        assert_eq!((n.dtype, n.sizes.len()), (FileDType::I64, 0));
    }
}

#[test]
fn every_element_type_survives() {
    for &dtype in FileDType::ALL {
        let raw: Vec<u8> = match dtype {
            FileDType::Bool => vec![1, 0],
            // Small values: neither half of one is NaN.
            _ => (0..2 * dtype.size()).map(|i| (i % 7) as u8).collect(),
        };
        let mut t = NamedTensors::default();
        t.push_contiguous("x", dtype, vec![2], raw.clone());
        let float8 = dtype.name().starts_with("float8");
        for format in [Format::Npz, Format::Safetensors, Format::Json] {
            let written = write(format, &t);
            let can = match format {
                Format::Npz | Format::Json => !float8,
                Format::Safetensors => !matches!(dtype, FileDType::C32 | FileDType::C128),
                Format::Torch => false,
            };
            assert_eq!(written.is_ok(), can, "{dtype} {format:?}");
            let Ok(written) = written else { continue };
            let back = read(format, &written).unwrap();
            let widened = format == Format::Npz && matches!(dtype, FileDType::BF16 | FileDType::C32);
            if !widened {
                assert_eq!(back.storages[0].bytes, raw, "{dtype} {format:?}");
                assert_eq!(back.storages[0].dtype, dtype);
            }
        }
    }
}

#[test]
fn bf16_becomes_f32_in_npz() {
    let mut t = NamedTensors::default();
    let raw: Vec<u8> = [1.5f32, -0.0].iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect();
    t.push_contiguous("x", FileDType::BF16, vec![2], raw);
    let back = read(Format::Npz, &write(Format::Npz, &t).unwrap()).unwrap();
    let values = floats(&back, "x");
    assert_eq!(values, [1.5, 0.0]);
    assert!(values[1].is_sign_negative());
}

#[test]
fn json_keeps_sharing() {
    let t = shared();
    let text = write(Format::Json, &t).unwrap();
    let mut back = read(Format::Json, &text).unwrap();
    for (b, a) in back.items.iter_mut().zip(&t.items) {
        assert_eq!(b.name, None);
        b.name = a.name.clone();
    }
    assert_eq!(back, t);
}

#[test]
fn json_numbers_are_pythons() {
    let text = r#"{"tensors": [{"dtype": "torch.int32", "size": [4], "stride": [1], "offset": 1, "storage": 5},
        {"scalar": null}, {"scalar": 2}, {"scalar": 2.0}, {"scalar": "nan"}, {"scalar": "s"}, {"scalar": true}],
      "storages": [{"id": 5, "dtype": "torch.complex64", "data": ["(1+2j)", "2j", "0j", "-1j", "(-0-1j)", "(nan+infj)", "(1.5e-05-1e+20j)"]},
        {"id": -1, "dtype": "torch.float32", "data": [1, 0.5, "nan", "inf", "-inf", 0.10000000149011612]},
        {"id": 2, "dtype": "torch.uint64", "data": [18446744073709551615]}]}"#;
    let t = json::read(text.as_bytes(), json::Section::Inputs).unwrap();
    let parts: Vec<f32> = t.storages[0].bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    assert_eq!(parts[..8], [1.0, 2.0, 0.0, 2.0, 0.0, 0.0, 0.0, -1.0]);
    assert!(parts[8] == 0.0 && parts[8].is_sign_negative() && parts[9] == -1.0);
    assert!(parts[10].is_nan() && parts[11] == f32::INFINITY);
    assert_eq!(parts[12..], [1.5e-05, -1e20]);
    assert_eq!(t.storages[1].bytes[20..], 0.1f32.to_le_bytes());
    let scalars: Vec<_> = t.items[1..].iter().map(|i| &i.value).collect();
    assert_eq!(*scalars[0], Item::Scalar(FileScalar::None));
    assert_eq!(*scalars[1], Item::Scalar(FileScalar::Int(2)));
    assert_eq!(*scalars[2], Item::Scalar(FileScalar::Float(2.0)));
    assert!(matches!(scalars[3], Item::Scalar(FileScalar::Float(x)) if x.is_nan()));
    assert_eq!(*scalars[4], Item::Scalar(FileScalar::Str("s".to_string())));
    assert_eq!(*scalars[5], Item::Scalar(FileScalar::Bool(true)));
    let written = String::from_utf8(json::write(&t).unwrap()).unwrap();
    assert!(
        written.contains(
            r#"["(1+2j)","2j","0j","-1j","(-0-1j)","(nan+infj)","(1.4999999621068127e-05-1.0000000200408773e+20j)"]"#
        ),
        "{written}"
    );
    assert!(written.contains(r#"[1.0,0.5,"nan","inf","-inf",0.10000000149011612]"#), "{written}");
}

#[test]
fn json_has_the_floats_that_python_writes() {
    let text = r#"{"tensors": [{"scalar": -Infinity}, {"scalar": NaN}],
      "storages": [{"id": 0, "dtype": "torch.float32", "data": [NaN, Infinity, -Infinity, 1.0]}]}"#;
    let t = json::read(text.as_bytes(), json::Section::Inputs).unwrap();
    let x: Vec<f32> = t.storages[0].bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    assert!(x[0].is_nan());
    assert_eq!(x[1..], [f32::INFINITY, f32::NEG_INFINITY, 1.0]);
    assert_eq!(t.items[0].value, Item::Scalar(FileScalar::Float(f64::NEG_INFINITY)));
    assert!(matches!(t.items[1].value, Item::Scalar(FileScalar::Float(x)) if x.is_nan()));
}

#[test]
fn json_that_is_wrong_is_refused() {
    let good = r#"{"tensors": [{"dtype": "torch.float32", "size": [2], "stride": [1], "offset": 0, "storage": 0}], "storages": [{"id": 0, "dtype": "torch.float32", "data": [1.0, 2.0]}]}"#;
    let fails = |from: &str, to: &str, what: &str| {
        assert!(good.contains(from));
        let e = json::read(good.replacen(from, to, 1).as_bytes(), json::Section::Inputs).unwrap_err();
        assert!(e.to_string().contains(what), "{e}");
    };
    fails("[2]", "[3]", "needs 3 elements");
    fails("\"offset\": 0", "\"offset\": 1", "needs 3 elements");
    fails("\"offset\": 0", "\"offset\": -1", "offset -1");
    fails("[2]", "[-2]", "size -2");
    fails("\"storage\": 0", "\"storage\": 1", "no storage 1");
    fails("torch.float32", "torch.float64", "needs 2 elements of float64");
    fails("[2]", "[2, 2]", "2 sizes but 1 strides");
    fails("2.0]", "true]", "true is no element of float32");
    fails("2.0]", "\"x\"]", "storage 0: element 1");
    fails("\"torch.float32\", \"data\"", "\"torch.int8\", \"data\"", "is no element of int8");
    fails("\"torch.float32\", \"data\"", "\"torch.qint8\", \"data\"", "qint8");
    fails("\"tensors\"", "\"t\"", "neither");
    assert!(json::read(good.as_bytes(), json::Section::After).is_err());
    for n in 0..good.len() {
        assert!(json::read(&good.as_bytes()[..n], json::Section::Inputs).is_err());
    }
}

#[test]
fn what_a_format_cannot_keep_is_refused() {
    let with = |value: FileScalar| NamedTensors {
        items: vec![NamedItem { name: Some("v".to_string()), value: Item::Scalar(value) }],
        storages: Vec::new(),
    };
    for format in [Format::Npz, Format::Safetensors] {
        assert_eq!(write(format, &with(FileScalar::None)).unwrap_err().places(), ["v"]);
        let mut unnamed = with(FileScalar::Int(1));
        unnamed.items[0].name = None;
        assert!(write(format, &unnamed).is_err());
        let mut twice = with(FileScalar::Int(1));
        twice.items.push(twice.items[0].clone());
        assert!(write(format, &twice).is_err());
    }
    assert!(Format::from_path(Path::new("a.dat")).is_err());
    assert!(read_file(Path::new("/nowhere/a.npz")).unwrap_err().to_string().starts_with("/nowhere/a.npz: "));
    // An expanded tensor that would fill the machine.
    let mut huge = NamedTensors::default();
    huge.push_contiguous("x", FileDType::U8, vec![1], vec![0]);
    let Item::Tensor(t) = &mut huge.items[0].value else { panic!() };
    (t.sizes, t.strides) = (vec![1 << 40], vec![0]);
    assert!(write(Format::Npz, &huge).is_err());
}

#[test]
fn strings_in_npz() {
    for text in ["", "relu", "é😀"] {
        let value = Item::Scalar(FileScalar::Str(text.to_string()));
        let t = NamedTensors { items: vec![NamedItem { name: Some("mode".to_string()), value }], storages: Vec::new() };
        let bytes = write(Format::Npz, &t).unwrap();
        assert_eq!(read(Format::Npz, &bytes).unwrap(), t);
        assert!(write(Format::Safetensors, &t).is_err());
        let file = npy::write_str(text).unwrap();
        for n in 0..file.len() {
            assert!(npy::read(&file[..n]).is_err());
        }
    }
}

#[test]
fn bad_npy_headers() {
    let file = |header: &str, data: &[u8]| {
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.as_bytes());
        out.extend(data);
        out
    };
    let array = |file: &[u8]| match npy::read(file).unwrap() {
        npy::Npy::Array(a) => a.bytes,
        npy::Npy::Str(s) => panic!("{s}"),
    };
    let ok = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n";
    let good = file(ok, &[1, 0, 2, 0]);
    assert_eq!(array(&good), [1, 0, 2, 0]);
    for n in 0..good.len() {
        assert!(npy::read(&good[..n]).is_err());
    }
    for i in 0..good.len() {
        for v in [0, b'(', b'\'', b'9', 0xff] {
            let mut bad = good.clone();
            bad[i] = v;
            let _ = npy::read(&bad);
        }
    }
    for (from, to, what) in [
        ("'<i2'", "'|O'", "element type |O"),
        ("'<i2'", "'<U4'", "array of strings"),
        ("'<i2'", "'|S4'", "element type |S4"),
        ("'<i2'", "[('a', '<i2')]", "records"),
        ("(2,)", "(3,)", "cut short"),
        ("(2,)", "(-2,)", "not understood"),
        ("(2,)", "(9223372036854775807, 9223372036854775807)", "sizes"),
        ("(2,)", "(99999999999999999999,)", "not understood"),
        ("False", "Maybe", "not understood"),
        ("'shape'", "'sharp'", "not understood"),
    ] {
        let e = npy::read(&file(&ok.replace(from, to), &[1, 0, 2, 0])).unwrap_err();
        assert!(e.to_string().contains(what), "{e}");
    }
    // Truth values that are neither 0 nor 1 are made so.
    let odd = file("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}", &[2, 0]);
    assert_eq!(array(&odd), [1, 0]);
}

#[test]
fn bad_files() {
    for name in ["numpy.npz", "numpy.safetensors"] {
        let path = fixture_path(name);
        let bytes = std::fs::read(&path).unwrap();
        let format = Format::from_path(&path).unwrap();
        for n in 0..bytes.len() {
            assert!(read(format, &bytes[..n]).is_err());
        }
        for i in 0..bytes.len() {
            for v in [0, 0xff, bytes[i] ^ 1] {
                let mut bad = bytes.clone();
                bad[i] = v;
                let _ = read(format, &bad);
            }
        }
    }
    let st = |header: &str, data: &[u8]| {
        let mut out = (header.len() as u64).to_le_bytes().to_vec();
        out.extend(header.as_bytes());
        out.extend(data);
        safetensors::read(&out).unwrap_err().to_string()
    };
    let a = r#""a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}"#;
    let overlap = format!("{{{a}, {}}}", a.replace("\"a\"", "\"b\"").replace("[0, 2]", "[1, 3]"));
    assert!(st(&overlap, &[0; 9]).contains("overlaps"));
    assert!(st(&format!("{{{a}}}"), &[0]).contains("do not fit"));
    assert!(st(&format!("{{{}}}", a.replace("U8", "F4")), &[0; 2]).contains("element type F4"));
    assert!(st(&format!("{{{}}}", a.replace("[0, 2]", "[2, 0]")), &[0; 2]).contains("do not fit"));
}
