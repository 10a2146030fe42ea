// Classify pictures over HTTP with the network in deploy.so.
//
//     server LIBRARY [PORT [THREADS]]        port 0: a free one
//
// The library is loaded once. Each thread of inference has its own executor, which is memory for one
// picture's activations; all of them read the weights where the library is mapped.

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <future>
#include <iostream>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

#include <dso.hpp>
#include <httplib.h>

using namespace std::chrono_literals;

constexpr std::int64_t side = 224, pixels = side * side;
constexpr std::size_t picture_bytes = 3 * pixels, body_limit = 1 << 20, answers = 5;

struct Result {
  struct Score {
    std::size_t index;
    float score;
  };
  std::vector<Score> top; // the best first
  double milliseconds;
};

// An executor, for one thread at a time.
class Classifier {
public:
  explicit Classifier(const dso::Module &model)
      : executor_(model["default"]()), normalize_(model["normalize"]),
        set_input_(executor_["set_input"]), run_(executor_["run"]),
        get_output_(executor_["get_output"]), picture_(picture_bytes) {}

  Classifier(Classifier &&) = default; // a copy would share the executor

  // `rgb` has (224, 224, 3) bytes.
  Result operator()(std::vector<std::uint8_t> &rgb) {
    const auto start = std::chrono::steady_clock::now();
    normalize_(dso::tensor(rgb), dso::tensor(picture_), pixels);
    set_input_("data", dso::tensor(picture_, {1, 3, side, side}));
    run_();
    const std::vector<float> scores = get_output_(0);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    return {top(scores), took.count()};
  }

private:
  static std::vector<Result::Score> top(const std::vector<float> &scores) {
    std::vector<Result::Score> best;
    for (std::size_t i = 0; i < scores.size(); i++) best.push_back({i, scores[i]});
    const std::size_t count = std::min(answers, best.size());
    std::partial_sort(best.begin(), best.begin() + count, best.end(), [](auto &a, auto &b) {
      return a.score != b.score ? a.score > b.score : a.index < b.index;
    });
    best.resize(count);
    return best;
  }

  dso::Module executor_;
  dso::Function normalize_, set_input_, run_, get_output_;
  std::vector<float> picture_;
};

// Threads that take pictures from one queue. Each has a Classifier.
class Workers {
public:
  Workers(const dso::Module &model, unsigned count) {
    std::vector<Classifier> classifiers; // all are made before a thread starts: they may throw
    for (unsigned i = 0; i < count; i++) classifiers.emplace_back(model);
    for (Classifier &classifier : classifiers)
      threads_.emplace_back([this, classify = std::move(classifier)]() mutable { work(classify); });
  }

  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    for (std::thread &thread : threads_) thread.join();
  }

  // Wait for the result. An error of the worker is thrown here.
  Result classify(std::vector<std::uint8_t> rgb) {
    Job job([&rgb](Classifier &classify) { return classify(rgb); });
    std::future<Result> result = job.get_future();
    {
      const std::lock_guard lock(mutex_);
      jobs_.push(std::move(job));
    }
    changed_.notify_one();
    return result.get();
  }

private:
  using Job = std::packaged_task<Result(Classifier &)>;

  void work(Classifier &classify) {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_ending_ || !jobs_.empty(); });
      if (jobs_.empty()) return;
      Job job = std::move(jobs_.front());
      jobs_.pop();
      lock.unlock();
      job(classify);
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<Job> jobs_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

// The shortest decimal that is read back as the same number.
template <class T> std::string decimal(T number) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

std::string json(const Result &result) {
  std::string top;
  for (const auto &[index, score] : result.top)
    top += (top.empty() ? "" : ", ") + ("{\"class\": " + decimal(index)) +
           ", \"score\": " + decimal(score) + "}";
  return "{\"top\": [" + top + "], \"milliseconds\": " + decimal(result.milliseconds) + "}\n";
}

void refuse(httplib::Response &response, int status, const std::string &why) {
  response.status = status;
  response.set_content(why + "\n", "text/plain");
}

void add_routes(httplib::Server &server, Workers &workers) {
  server.Get("/healthz", [](const httplib::Request &, httplib::Response &response) {
    response.set_content("ok\n", "text/plain");
  });

  server.Post("/classify", [&](const httplib::Request &request, httplib::Response &response) {
    const std::string &body = request.body;
    if (body.size() != picture_bytes)
      return refuse(response, 400,
                    "body: expected " + decimal(picture_bytes) +
                        " bytes (224 rows of 224 pixels of red, green, blue), found " +
                        decimal(body.size()));
    const Result result = workers.classify({body.begin(), body.end()});
    response.set_content(json(result), "application/json");
  });

  // An error of the library is a dso::Error.
  server.set_exception_handler([](const auto &, auto &response, std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception &error) { refuse(response, 500, error.what()); }
  });

  // What httplib refused by itself has a status and no body.
  server.set_error_handler([](const httplib::Request &request, httplib::Response &response) {
    if (response.body.empty())
      refuse(response, response.status,
             request.method + " " + request.path +
                 ": expected GET /healthz, or POST /classify with a picture of " +
                 decimal(picture_bytes) + " bytes as application/octet-stream");
  });
  server.set_payload_max_length(body_limit);
}

// Block the signals that end the server, in this thread and in those that it starts.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Serve until one of the signals; then finish the requests that were accepted.
void serve(httplib::Server &server, int port, const sigset_t &signals) {
  // httplib's own options let a second server listen on the same port.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  const std::string host = "127.0.0.1";
  if (port == 0) port = server.bind_to_any_port(host);
  else if (!server.bind_to_port(host, port)) port = -1;
  if (port < 0) throw std::runtime_error("the port is in use");

  auto listening = std::async(std::launch::async, [&] { return server.listen_after_bind(); });
  while (!server.is_running() && listening.wait_for(1ms) == std::future_status::timeout) continue;
  std::cout << "listening on http://" << host << ":" << port << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  server.stop();
  if (!listening.get()) throw std::runtime_error("the socket was closed");
}

template <class T> T number(const std::string &text) {
  T number = 0;
  const char *last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last)
    throw std::invalid_argument("expected a number, found '" + text + "'");
  return number;
}

int main(int count, char **arguments) try {
  if (count < 2 || count > 4) {
    std::cerr << "usage: server LIBRARY [PORT [THREADS]]\n";
    return 2;
  }
  const int port = count > 2 ? number<std::uint16_t>(arguments[2]) : 8080;
  const unsigned cores = std::thread::hardware_concurrency();
  const unsigned threads = count > 3 ? number<unsigned>(arguments[3]) : cores;

  const sigset_t signals = block_signals(); // before any thread starts
  Workers workers(dso::Module::load(arguments[1]), std::max(1u, threads));
  httplib::Server server;
  add_routes(server, workers);
  serve(server, port, signals);
  return 0;
} catch (const std::exception &error) {
  std::cerr << "server: " << error.what() << '\n';
  return 1;
}
