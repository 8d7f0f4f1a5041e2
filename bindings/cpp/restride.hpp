// restride for C++17: owners for the handles of restride.h, exceptions for its statuses, views for its tensors. Header only.
//
// Owners move and do not copy. Errors are restride::error. Thread rules are those of restride.h.
#pragma once

#include "restride.h"

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace restride {

// An error of restride: what() is the whole of it.
class error : public std::runtime_error {
public:
    explicit error(restride_status *status)
        : std::runtime_error(text(restride_status_text(status))), kind(restride_status_kind(status)),
          message(text(restride_status_message(status))), node(text(restride_status_node(status))),
          source(text(restride_status_source(status))), help(text(restride_status_help(status))) {
        restride_status_free(status);
    }

    restride_kind kind;
    // What is wrong, at which node and source line, what to do; empty without an error.
    std::string message, node, source, help;

private:
    static const char *text(const char *s) { return s ? s : ""; }
};

inline void check(restride_status *status) {
    if (status) {
        throw error(status);
    }
}

// Elements in memory of somebody else, as std::span.
template <class T> class view {
public:
    view(T *data, std::size_t size) : data_(data), size_(size) {}
    T *data() const { return data_; }
    std::size_t size() const { return size_; }
    T *begin() const { return data_; }
    T *end() const { return data_ + size_; }
    T &operator[](std::size_t i) const { return data_[i]; }

private:
    T *data_;
    std::size_t size_;
};

// The DLPack type of a C++ type.
template <class T> constexpr DLDataType data_type() {
    static_assert(std::is_arithmetic_v<T>, "an arithmetic type is needed");
    const auto code = std::is_same_v<T, bool>   ? kDLBool
                      : std::is_floating_point_v<T> ? kDLFloat
                      : std::is_signed_v<T>         ? kDLInt
                                                    : kDLUInt;
    return DLDataType{static_cast<uint8_t>(code), static_cast<uint8_t>(8 * sizeof(T)), 1};
}

// A tensor in memory that restride gave, kept as long as this is.
class tensor {
public:
    explicit tensor(DLManagedTensorVersioned *t) : own_(t) {}

    const DLTensor &dl() const { return own_->dl_tensor; }
    std::vector<int64_t> sizes() const { return {dl().shape, dl().shape + dl().ndim}; }
    bool is_contiguous() const {
        int64_t step = 1;
        for (int d = dl().ndim - 1; d >= 0; d--) {
            if (dl().shape[d] != 1 && dl().strides && dl().strides[d] != step) {
                return false;
            }
            step *= dl().shape[d];
        }
        return true;
    }
    std::size_t numel() const {
        std::size_t n = 1;
        for (int d = 0; d < dl().ndim; d++) {
            n *= static_cast<std::size_t>(dl().shape[d]);
        }
        return n;
    }
    // The elements of a row-major tensor.
    template <class T> view<T> elements() const {
        const DLDataType want = data_type<T>();
        if (std::memcmp(&want, &dl().dtype, sizeof want) != 0) {
            throw std::invalid_argument("the tensor has elements of another type");
        }
        if (!is_contiguous()) {
            throw std::invalid_argument("the tensor is not row-major");
        }
        return {static_cast<T *>(dl().data), numel()};
    }
    view<const unsigned char> bytes() const {
        if (!is_contiguous()) {
            throw std::invalid_argument("the tensor is not row-major");
        }
        return {static_cast<const unsigned char *>(dl().data), numel() * (dl().dtype.bits / 8u)};
    }

private:
    struct deleter {
        void operator()(DLManagedTensorVersioned *t) const { t->deleter(t); }
    };
    std::unique_ptr<DLManagedTensorVersioned, deleter> own_;
};

// A name and memory of the program, which must stay as long as restride.h says.
class argument {
public:
    // Row-major elements; an empty name stands for the position.
    template <class T>
    argument(std::string name, T *data, std::vector<int64_t> sizes) : name_(std::move(name)), sizes_(std::move(sizes)) {
        dl_.data = const_cast<std::remove_const_t<T> *>(data);
        dl_.device = DLDevice{kDLCPU, 0};
        dl_.ndim = static_cast<int32_t>(sizes_.size());
        dl_.dtype = data_type<std::remove_const_t<T>>();
        flags_ = std::is_const_v<T> ? RESTRIDE_TENSOR_READ_ONLY : 0;
    }
    // A tensor that restride gave.
    argument(std::string name, const tensor &t) : name_(std::move(name)), sizes_(t.sizes()), dl_(t.dl()) {
        if (dl_.strides) {
            strides_.assign(dl_.strides, dl_.strides + dl_.ndim);
        }
    }
    // Declares that the arguments of a call with the same number, not 0, share their memory.
    argument on_storage(uint32_t number) && {
        storage_ = number;
        return std::move(*this);
    }

    // Valid while the argument stays where it is.
    restride_tensor raw() {
        dl_.shape = sizes_.data();
        dl_.strides = strides_.empty() ? nullptr : strides_.data();
        return {name_.empty() ? nullptr : name_.c_str(), &dl_, nullptr, storage_, flags_};
    }

private:
    std::string name_;
    std::vector<int64_t> sizes_, strides_;
    DLTensor dl_{};
    uint32_t storage_ = 0, flags_ = 0;
};

using arguments = std::vector<argument>;

namespace detail {
inline std::vector<restride_tensor> raw(arguments &all) {
    std::vector<restride_tensor> out;
    for (auto &a : all) {
        out.push_back(a.raw());
    }
    return out;
}

template <class H, void (*Free)(H *)> struct deleter {
    void operator()(H *h) const { Free(h); }
};
template <class H, void (*Free)(H *)> using handle = std::unique_ptr<H, deleter<H, Free>>;

// Calls a function that gives something through its last argument.
template <class R, class F> R *made(F f) {
    R *out = nullptr;
    check(f(&out));
    return out;
}

inline std::vector<std::string> texts(restride_strings *strings) {
    handle<restride_strings, restride_strings_free> own(strings);
    std::vector<std::string> out;
    for (std::size_t i = 0; i < restride_strings_count(strings); i++) {
        out.emplace_back(restride_strings_get(strings, i));
    }
    return out;
}
} // namespace detail

// The names of the models in an archive.
inline std::vector<std::string> models(const std::string &path) {
    return detail::texts(
        detail::made<restride_strings>([&](auto out) { return restride_models(path.c_str(), nullptr, out); }));
}

// A program: what torch.export.save wrote, or what a transformation made of it.
class program {
public:
    explicit program(restride_program *p) : own_(p) {}
    explicit program(const std::string &path, const restride_open_options *options = nullptr)
        : program(detail::made<restride_program>([&](auto out) { return restride_open(path.c_str(), options, out); })) {}
    // The bytes are copied.
    static program from_bytes(const void *bytes, std::size_t size) {
        return program(detail::made<restride_program>([&](auto out) {
            return restride_open_bytes(static_cast<const uint8_t *>(bytes), size, 0, nullptr, out);
        }));
    }

    // Descriptions live as long as the program.
    std::vector<restride_description> describe(restride_role role) const {
        std::size_t count = 0;
        check(restride_program_count(get(), role, &count));
        std::vector<restride_description> out(count);
        for (std::size_t i = 0; i < count; i++) {
            check(restride_program_describe(get(), role, i, &out[i]));
        }
        return out;
    }
    tensor sample(std::size_t index) const {
        return tensor(
            detail::made<DLManagedTensorVersioned>([&](auto out) { return restride_program_sample(get(), index, out); }));
    }
    void save(const std::string &path) const { check(restride_save(get(), path.c_str())); }
    program functionalize() const {
        return program(detail::made<restride_program>([&](auto out) { return restride_functionalize(get(), out); }));
    }
    program reinplace(bool views = false) const {
        return program(detail::made<restride_program>([&](auto out) { return restride_reinplace(get(), views, out); }));
    }
    program grad(const restride_grad_options &options) const {
        return program(detail::made<restride_program>([&](auto out) { return restride_grad(get(), &options, out); }));
    }
    restride_program *get() const { return own_.get(); }

private:
    detail::handle<restride_program, restride_program_free> own_;
};

inline restride_grad_options grad_options() {
    restride_grad_options o;
    restride_grad_options_init(&o);
    return o;
}

inline restride_compile_options compile_options() {
    restride_compile_options o;
    restride_compile_options_init(&o);
    return o;
}

// The outputs of one run.
class outputs {
public:
    explicit outputs(restride_outputs *o) : own_(o) {}
    std::size_t size() const { return restride_outputs_count(own_.get()); }
    std::string name(std::size_t i) const {
        const char *n = restride_outputs_name(own_.get(), i);
        return n ? n : "";
    }
    tensor operator[](std::size_t i) const {
        return tensor(
            detail::made<DLManagedTensorVersioned>([&](auto out) { return restride_outputs_tensor(own_.get(), i, out); }));
    }

private:
    detail::handle<restride_outputs, restride_outputs_free> own_;
};

// A compiled program. Any number of threads may use one.
class compiled {
public:
    explicit compiled(const program &p, const restride_compile_options *options = nullptr, arguments inputs = {}) {
        const auto raw = detail::raw(inputs);
        own_.reset(detail::made<restride_compiled>(
            [&](auto out) { return restride_compile(p.get(), raw.data(), raw.size(), options, out); }));
    }
    std::string plan_json() const {
        char *text = nullptr;
        check(restride_compiled_plan_json(get(), nullptr, 0, &text));
        std::unique_ptr<char, void (*)(char *)> own(text, restride_string_free);
        return text;
    }
    restride_compiled *get() const { return own_.get(); }

private:
    detail::handle<restride_compiled, restride_compiled_free> own_;
};

// An arena and a state.
class instance {
public:
    explicit instance(restride_instance *i) : own_(i) {}
    explicit instance(const compiled &c)
        : instance(detail::made<restride_instance>([&](auto out) { return restride_instance_new(c.get(), out); })) {}

    // The memory must stay until the instance, or the session made of it, is gone.
    void bind_state(arguments state, restride_contents contents = RESTRIDE_CONTENTS_COPY) {
        const auto raw = detail::raw(state);
        check(restride_instance_bind_state(get(), raw.data(), raw.size(), contents));
    }
    tensor state(const std::string &name) {
        return tensor(detail::made<DLManagedTensorVersioned>(
            [&](auto out) { return restride_instance_state(get(), name.c_str(), out); }));
    }
    outputs run(arguments inputs) {
        const auto raw = detail::raw(inputs);
        return outputs(detail::made<restride_outputs>(
            [&](auto out) { return restride_instance_run(get(), raw.data(), raw.size(), out); }));
    }
    restride_instance *get() const { return own_.get(); }
    restride_instance *release() { return own_.release(); }

private:
    detail::handle<restride_instance, restride_instance_free> own_;
};

// An instance bound to memory, which must stay until the session is gone.
class session {
public:
    // If this throws, the instance is as before.
    session(instance &&i, arguments inputs, arguments outputs = {}) {
        const auto in = detail::raw(inputs), out = detail::raw(outputs);
        own_.reset(detail::made<restride_session>([&](auto made) {
            return restride_session_new(i.get(), in.data(), in.size(), out.data(), out.size(), made);
        }));
        i.release();
    }
    void run() { check(restride_session_run(own_.get())); }
    tensor output(std::size_t index) {
        return tensor(
            detail::made<DLManagedTensorVersioned>([&](auto out) { return restride_session_output(own_.get(), index, out); }));
    }
    tensor state(const std::string &name) {
        return tensor(detail::made<DLManagedTensorVersioned>(
            [&](auto out) { return restride_session_state(own_.get(), name.c_str(), out); }));
    }
    instance end() && {
        restride_session *s = own_.release();
        return instance(detail::made<restride_instance>([&](auto out) { return restride_session_end(s, out); }));
    }

private:
    detail::handle<restride_session, restride_session_free> own_;
};

// The programs of one archive over one state.
class methods {
public:
    explicit methods(const std::string &path, const restride_compile_options *options = nullptr)
        : own_(detail::made<restride_methods>(
              [&](auto out) { return restride_methods_open(path.c_str(), nullptr, options, out); })) {}
    std::vector<std::string> names() {
        return detail::texts(
            detail::made<restride_strings>([&](auto out) { return restride_methods_names(own_.get(), out); }));
    }
    program program_of(const std::string &name) {
        return program(detail::made<restride_program>(
            [&](auto out) { return restride_methods_program(own_.get(), name.c_str(), out); }));
    }
    void bind_state(arguments state, restride_contents contents = RESTRIDE_CONTENTS_COPY) {
        const auto raw = detail::raw(state);
        check(restride_methods_bind_state(own_.get(), raw.data(), raw.size(), contents));
    }
    tensor state(const std::string &name) {
        return tensor(detail::made<DLManagedTensorVersioned>(
            [&](auto out) { return restride_methods_state(own_.get(), name.c_str(), out); }));
    }
    outputs run(const std::string &name, arguments inputs) {
        const auto raw = detail::raw(inputs);
        return outputs(detail::made<restride_outputs>(
            [&](auto out) { return restride_methods_run(own_.get(), name.c_str(), raw.data(), raw.size(), out); }));
    }

private:
    detail::handle<restride_methods, restride_methods_free> own_;
};

} // namespace restride
