// Fused steps of optimizers are taken apart: each parameter's step, with the members of lists that are not empty.
// run: functionalize, run
graph(%p: f32[2, 3], %q: f32[4], %g: f32[3, 2], %h: f32[4], %m: f32[2, 3], %n: f32[4], %v: f32[2, 3], %w: f32[4], %s: f32[2]) {
  %t: f32[2, 3][1, 2] = aten.t.default(%g)
  %d: f32[2, 3] = aten.clone.default(%t, memory_format=contiguous_format)
  %a: f32[], %b: f32[]+1 = aten.unbind.int(%s)
  aten._foreach_add_.Scalar([%a, %b], 1)
  aten._fused_adamw_.default([%p, %q], [%d, %h], [%m, %n], [%v, %w], [], [%a, %b], lr=0.5, beta1=0.75, beta2=0.5, weight_decay=0.25, eps=0.125, amsgrad=False, maximize=False)
  aten._fused_adam_.tensor_lr([%q], [%h], [%n], [%w], [], [%a], lr=%a, beta1=0.75, beta2=0.5, weight_decay=0.0, eps=0.125, amsgrad=False, maximize=True)
  aten._fused_sgd_.default([%p, %q], [%d, %h], [], weight_decay=0.5, momentum=0.0, lr=0.25, dampening=0.0, nesterov=False, maximize=False, is_first_step=False)
  aten._fused_sgd_.default([%q], [%h], [%n], weight_decay=0.5, momentum=0.5, lr=0.25, dampening=0.0, nesterov=True, maximize=True, is_first_step=False, grad_scale=%b)
  aten._fused_adagrad_.default([%p], [%d], [%v], [%b], lr=0.5, lr_decay=0.5, weight_decay=0.0, eps=0.125, maximize=False)
  return
}

// == functionalize
// stage: functional
// output 0: mutation of %p
// output 1: mutation of %q
// output 2: mutation of %h
// output 3: mutation of %m
// output 4: mutation of %n
// output 5: mutation of %v
// output 6: mutation of %w
// output 7: mutation of %s
//
// graph(
//   %p: f32[2, 3],
//   %q: f32[4],
//   %g: f32[3, 2],
//   %h: f32[4],
//   %m: f32[2, 3],
//   %n: f32[4],
//   %v: f32[2, 3],
//   %w: f32[4],
//   %s: f32[2],
// ) {
//   %t: f32[2, 3][1, 2] = aten.t.default(%g)
//   %d: f32[2, 3] = aten.clone.default(%t, memory_format=contiguous_format)
//   %a: f32[], %b: f32[]+1 = aten.unbind.int(%s)
//   %add: f32[] = aten.add.Scalar(%a, 1)
//   %v_1: f32[2] = aten.select_scatter.default(%s, %add, 0, 0)
//   %add_1: f32[]+1 = aten.add.Scalar(%b, 1)
//   %v_2: f32[2] = aten.select_scatter.default(%v_1, %add_1, 0, 1)
//   %fused_adamw: f32[2, 3], %fused_adamw_1: f32[2, 3], %fused_adamw_2: f32[2, 3], %fused_adamw_3: f32[2, 3], %fused_adamw_4: f32[2, 3] = restride.fused_adamw.default(%p, %d, %m, %v, None, %add, 0.5, 0.75, 0.5, 0.25, 0.125, False, False, None, None)
//   %fused_adamw_5: f32[4], %fused_adamw_6: f32[4], %fused_adamw_7: f32[4], %fused_adamw_8: f32[4], %fused_adamw_9: f32[4] = restride.fused_adamw.default(%q, %h, %n, %w, None, %add_1, 0.5, 0.75, 0.5, 0.25, 0.125, False, False, None, None)
//   %fused_adam: f32[4], %fused_adam_1: f32[4], %fused_adam_2: f32[4], %fused_adam_3: f32[4], %fused_adam_4: f32[4] = restride.fused_adam.tensor_lr(%fused_adamw_5, %fused_adamw_6, %fused_adamw_7, %fused_adamw_8, None, %add, %add, 0.75, 0.5, 0.0, 0.125, False, True, None, None)
//   %fused_sgd: f32[2, 3], %fused_sgd_1: f32[2, 3], %fused_sgd_2: f32[2, 3] = restride.fused_sgd.default(%fused_adamw, %fused_adamw_1, None, 0.5, 0.0, 0.25, 0.0, False, False, False, None, None)
//   %fused_sgd_3: f32[4], %fused_sgd_4: f32[4], %fused_sgd_5: f32[4] = restride.fused_sgd.default(%fused_adam, %fused_adam_1, None, 0.5, 0.0, 0.25, 0.0, False, False, False, None, None)
//   %fused_sgd_6: f32[4], %fused_sgd_7: f32[4], %fused_sgd_8: f32[4] = restride.fused_sgd.default(%fused_sgd_3, %fused_sgd_4, %fused_adam_2, 0.5, 0.5, 0.25, 0.0, True, True, False, %add_1, None)
//   %fused_adagrad: f32[2, 3], %fused_adagrad_1: f32[2, 3], %fused_adagrad_2: f32[2, 3], %fused_adagrad_3: f32[]+1 = restride.fused_adagrad.default(%fused_sgd, %fused_sgd_1, %fused_adamw_3, %add_1, 0.5, 0.5, 0.0, 0.125, False, None, None)
//   %v_3: f32[2] = aten.select_scatter.default(%v_2, %fused_adagrad_3, 0, 1)
//   return %fused_adagrad, %fused_sgd_6, %fused_sgd_7, %fused_adamw_2, %fused_sgd_8, %fused_adagrad_2, %fused_adam_3, %v_3
// }

// == run
// input 0: f32[2, 3][3, 1]+0 = [0.0 -0.9101294279098511 -0.7305974960327148 -0.19144469499588013 0.3071926534175873 0.7578299641609192]
// input 1: f32[4][1]+0 = [0.0 -0.9834861159324646 -0.640661358833313 -0.16667068004608154]
// input 2: f32[3, 2][2, 1]+0 = [0.0 1.0 2.0 3.0 4.0 5.0]
// input 3: f32[4][1]+0 = [0.0 0.5 1.0 1.5]
// input 4: f32[2, 3][3, 1]+0 = [0.0 1.25 2.5 2.5 3.75 5.0]
// input 5: f32[4][1]+0 = [0.0 -0.9513760805130005 -1.086560845375061 -1.1410281658172607]
// input 6: f32[2, 3][3, 1]+0 = [0.0 6.5 25.0 3.0 15.5 40.0]
// input 7: f32[4][1]+0 = [0.0 1.0 3.5 7.5]
// input 8: f32[2][1]+0 = [1.0 2.0]
