//! Values that are read in part alone: the part has the bits that it has in the whole value, and the whole takes no memory.

use restride::{CompileOptions, Compiled, Inputs, RawTensor, RunOptions, RunValue, State};

/// A slice of a sum, an index of a product and a row of a difference.
const PARTS: &str = "graph(%x: f32[1, 8, 64, 16], %y: f32[1, 8, 16, 64], %s: f32[]) {
  %i: i64[2] = aten.arange.start(40, 42)
  %turned: f32[1, 8, 64, 16][8192, 1024, 1, 64] = aten.transpose.int(%y, -2, -1)
  %sum: f32[1, 8, 64, 16] = aten.add.Tensor(%x, %turned)
  %slice: f32[1, 8, 1, 16][8192, 1024, 16, 1]+272 = aten.slice.Tensor(%sum, 2, 17, 18)
  %written: f32[1, 8, 1, 16] = aten.clone.default(%slice, memory_format=contiguous_format)
  %product: f32[1, 8, 64, 16] = aten.mul.Tensor(%x, %s)
  %indexed: f32[1, 8, 2, 16] = aten.index.Tensor(%product, [None, None, %i])
  %half: f32[1, 8, 64, 16] = aten.mul.Scalar(%x, 0.3)
  %both: f32[1, 8, 64, 16] = aten.sub.Tensor(%half, %x)
  %head: f32[1, 64, 16][8192, 16, 1]+3072 = aten.select.int(%both, 1, 3)
  %copied: f32[1, 64, 16] = aten.clone.default(%head)
  return %written, %indexed, %copied";

/// The bytes of the outputs and of the arena.
fn outcome(text: &str) -> (Vec<Vec<u8>>, i64) {
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    let inputs = restride::random_inputs(&program, 0).expect("random inputs");
    let compiled = Compiled::new(program, Some(&inputs), &CompileOptions::default()).expect("compiles");
    let arena = compiled.prepare(&inputs).expect("places").report().plan.arena_bytes;
    let outputs = compiled.instance().expect("an instance").run(&inputs, &RunOptions::default()).expect("runs");
    let tensors = outputs.values.iter().filter_map(RunValue::tensor);
    (tensors.map(|t| t.to_elements::<f32>().into_iter().flat_map(f32::to_le_bytes).collect()).collect(), arena)
}

#[test]
fn parts_have_the_bits_of_the_whole() {
    let (parts, arena) = outcome(&format!("{PARTS}\n}}"));
    let (with_wholes, _) = outcome(&format!("{PARTS}, %sum, %product, %both\n}}"));
    assert_eq!(parts.len(), 3);
    assert_eq!(parts, with_wholes[..3]);
    assert!(arena < 8 * 64 * 16 * 4, "{arena} bytes of arena hold a whole value");
}

/// A divisor of zero that the program does not read.
#[test]
fn an_element_outside_of_the_part_fails() {
    let text = "graph(%x: i64[64, 64], %y: i64[64, 64]) {
      %s: i64[64, 64] = aten.add.Scalar(%y, 1)
      %q: i64[64, 64] = aten.OPERATOR
      %row: i64[64][1]+128 = aten.select.int(%q, 0, 2)
      %copied: i64[64] = aten.clone.default(%row)
      return %copied
    }";
    let calls = [
        "div.Tensor_mode(%x, %s, rounding_mode=\"floor\")",
        "floor_divide.default(%x, %s)",
        "remainder.Tensor(%x, %s)",
        "remainder.Scalar_Tensor(7, %s)",
        "fmod.Tensor(%x, %s)",
    ];
    for call in calls {
        let text = text.replace("OPERATOR", call);
        let program = restride::text::parse(&text, &restride_ops::lookup).expect("a program");
        let run = |last: i64| {
            let mut divisors = vec![0i64; 4096];
            divisors[4095] = last;
            let tensor = |elements: &[i64]| RunValue::Tensor(RawTensor::from_slice(elements, &[64, 64]));
            let inputs = Inputs::new(vec![tensor(&[5; 4096]), tensor(&divisors)]);
            let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default()).expect("compiles");
            compiled.instance().expect("an instance").run(&inputs, &RunOptions::default()).map(|_| ())
        };
        run(0).expect("all divisors are 1");
        let error = run(-1).expect_err("a divisor is 0").to_string();
        assert!(error.contains("ZeroDivisionError"), "{call}: {error}");
    }
}

/// A quotient that no output depends on, in a program that the passes change.
#[test]
fn an_unread_quotient_fails() {
    let texts = [
        "graph(%x: i64[4], %y: i64[4]) {
          %q: i64[4] = aten.floor_divide.default(%x, %y)
          %n: i64[4] = aten.neg.default(%q)
          %c: i64[4] = aten.clone.default(%x)
          %r: i64[2, 2] = aten._unsafe_view.default(%c, [2, 2])
          return %r
        }",
        "graph(%x: i64[4], %y: i64[4]) {
          %c: i64[4] = aten.clone.default(%x)
          %q: i64[4] = aten.floor_divide_.Tensor(%c, %y)
          %z: i64[4] = aten.zero_.default(%c)
          %r: i64[2, 2] = aten.reshape.default(%z, [2, 2])
          return %r
        }",
    ];
    for text in texts {
        let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
        let run = |last: i64| {
            let tensor = |elements: &[i64]| RunValue::Tensor(RawTensor::from_slice(elements, &[4]));
            let inputs = Inputs::new(vec![tensor(&[5; 4]), tensor(&[1, 1, 1, last])]);
            let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default()).expect("compiles");
            compiled.instance().expect("an instance").run(&inputs, &RunOptions::default()).map(|_| ())
        };
        run(1).expect("all divisors are 1");
        let error = run(0).expect_err("a divisor is 0").to_string();
        assert!(error.contains("ZeroDivisionError"), "{error}");
    }
}

/// Calls that fail on some elements, whose results no output depends on: eager PyTorch fails.
#[test]
fn an_unread_call_that_fails_on_elements_fails() {
    let calls = [
        ("f32[2, 3] = aten.index_select.default(%x, 0, %i)", "out of DATA bounds"),
        ("f32[2, 3] = aten.embedding.default(%x, %i)", "index out of range"),
        ("f32[3, 3] = aten.index_put.default(%x, [%i], %v)", "out of bounds"),
        ("f32[2] = aten.take.default(%x, %i)", "out of range"),
        ("i64[2, 3] = aten.one_hot.default(%i, 3)", "Class values must be"),
    ];
    for (call, why) in calls {
        let text = format!(
            "graph(%x: f32[3, 3], %i: i64[2], %v: f32[2, 3]) {{
              %q: {call}
              %c: f32[3, 3] = aten.neg.default(%x)
              return %c
            }}"
        );
        let program = restride::text::parse(&text, &restride_ops::lookup).expect("a program");
        let run = |last: i64| {
            let inputs = Inputs::new(vec![
                RunValue::Tensor(RawTensor::from_slice(&[1f32; 9], &[3, 3])),
                RunValue::Tensor(RawTensor::from_slice(&[0, last], &[2])),
                RunValue::Tensor(RawTensor::from_slice(&[1f32; 6], &[2, 3])),
            ]);
            let compiled = Compiled::new(program.clone(), Some(&inputs), &CompileOptions::default()).expect("compiles");
            compiled.instance().expect("an instance").run(&inputs, &RunOptions::default()).map(|_| ())
        };
        run(1).expect("all indices are in range");
        let error = run(99).expect_err("an index is out of range").to_string();
        assert!(error.contains(why), "{call}: {error}");
    }
}

/// Strides along dimensions of size 1 follow from the sizes of a run.
#[test]
fn strides_of_size_1_are_those_of_the_run() {
    let text = "
        symbol n in [2, inf]
        graph(%x: f32[3, n]) {
          %t: f32[n, 3][1, n] = aten.t.default(%x)
          %s: f32[n, 1][1, n] = aten.slice.Tensor(%t, 1, 0, 1)
          %y: f32[n, 1] = aten.mul.Scalar(%s, 2)
          return %y, %y
        }";
    let program = restride::text::parse(text, &restride_ops::lookup).expect("a program");
    for n in [2i64, 5] {
        let x = RawTensor::from_slice(&vec![1f32; 3 * n as usize], &[3, n]);
        let inputs = Inputs::new(vec![RunValue::Tensor(x)]);
        let compiled = Compiled::new(program.clone(), None, &CompileOptions::default()).expect("compiles");
        let outputs = compiled.instance().expect("an instance").run(&inputs, &RunOptions::default()).expect("runs");
        let program = compiled.functional();
        let mut state = State::new(program).expect("a state");
        let functional = restride::interpret(program, &inputs, &mut state, &RunOptions::default()).expect("runs");
        for out in outputs.values.iter().chain(&functional.values) {
            let layout = out.tensor().expect("a tensor").layout();
            assert_eq!(layout.strides[..], [1, n], "{layout}");
        }
    }
}
