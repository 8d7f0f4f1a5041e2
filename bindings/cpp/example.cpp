// The two examples: `example decode MODEL.pt2 TOKENS RESULTS` and `example train MODEL.pt2 STEP.pt2 RESULTS`, as bindings/c has them.
#include "restride.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>

namespace {

// A line of a results file: a name, and bytes as hexadecimal digits.
void write_result(std::ostream &out, const std::string &name, restride::view<const unsigned char> bytes) {
    static const char digits[] = "0123456789abcdef";
    std::string line = name + " ";
    for (unsigned char b : bytes) {
        line += digits[b >> 4];
        line += digits[b & 15];
    }
    out << line << "\n";
}

template <class T> restride::view<const unsigned char> bytes_of(const std::vector<T> &v) {
    return {reinterpret_cast<const unsigned char *>(v.data()), v.size() * sizeof(T)};
}

void decode(const std::string &model, int64_t tokens, std::ostream &results) {
    const restride::program program(model);
    const restride::compiled compiled(program);
    restride::instance instance(compiled);

    // Every buffer that a step writes gets memory of this program.
    std::vector<std::pair<std::string, std::vector<uint8_t>>> memory;
    for (const auto &about : program.describe(RESTRIDE_ROLE_STATE)) {
        if (about.mutated == 1) {
            memory.emplace_back(about.name, std::vector<uint8_t>(about.storage_bytes));
        }
    }
    restride::arguments state;
    for (auto &[name, bytes] : memory) {
        state.emplace_back(name, bytes.data(), std::vector<int64_t>{static_cast<int64_t>(bytes.size())});
    }
    instance.bind_state(std::move(state));

    std::array<int64_t, 1> token{1}, position{0};
    std::vector<float> logits(128);
    restride::session session(std::move(instance), {{"", token.data(), {1, 1}}, {"", position.data(), {1}}},
                              {{"output.0", logits.data(), {1, 1, 128}}});
    for (int64_t at = 0; at < tokens; at++) {
        position[0] = at;
        session.run();
        write_result(results, "output.0", bytes_of(logits));
        for (const auto &[name, bytes] : memory) {
            write_result(results, name, bytes_of(bytes));
        }
        // The last of the largest.
        token[0] = logits.rend() - std::max_element(logits.rbegin(), logits.rend()) - 1;
        std::cout << token[0] << " ";
    }
    std::cout << "\n";
}

void train(const std::string &model, const std::string &to, std::ostream &results) {
    auto how = restride::grad_options();
    how.optimizer = RESTRIDE_OPTIMIZER_ADAM;
    how.lr = 0.01;
    const auto step = restride::program(model).grad(how);
    step.save(to);
    restride::instance instance{restride::compiled(step)};

    std::vector<restride::tensor> samples;
    for (std::size_t i = 0; i < step.describe(RESTRIDE_ROLE_INPUT).size(); i++) {
        samples.push_back(step.sample(i));
    }
    for (int at = 0; at < 10; at++) {
        restride::arguments inputs;
        for (const auto &sample : samples) {
            inputs.emplace_back("", sample);
        }
        const auto loss = instance.run(std::move(inputs))[0];
        std::cout << loss.elements<float>()[0] << " ";
        write_result(results, "output.0", loss.bytes());
        if (at == 0 || at == 9) {
            for (const auto &about : step.describe(RESTRIDE_ROLE_STATE)) {
                write_result(results, std::to_string(at) + "." + about.name, instance.state(about.name).bytes());
            }
        }
    }
    std::cout << "\n";
}

} // namespace

int main(int argc, char **argv) {
    const std::vector<std::string> args(argv + 1, argv + argc);
    if (args.size() != 4 || (args[0] != "decode" && args[0] != "train")) {
        std::cerr << "usage: example decode MODEL.pt2 TOKENS RESULTS | example train MODEL.pt2 STEP.pt2 RESULTS\n";
        return 2;
    }
    try {
        // An error is an exception with a message.
        try {
            restride::program("/nowhere/x.pt2");
            std::cerr << "a missing file opens\n";
            return 1;
        } catch (const restride::error &e) {
            if (e.kind != RESTRIDE_KIND_FILE) {
                throw;
            }
        }
        std::ofstream results(args[3]);
        if (args[0] == "decode") {
            decode(args[1], std::stoll(args[2]), results);
        } else {
            train(args[1], args[2], results);
        }
        return results ? 0 : 1;
    } catch (const std::exception &e) {
        std::cerr << "error: " << e.what() << "\n";
        return 1;
    }
}
