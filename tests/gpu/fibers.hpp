// fibers.hpp - the work-items of a group as fibers of one thread: each goes on until it has to wait. Mostly the one that was
// woken last is next, so that some are as far ahead of others as barriers let them be, and now and then it is any: what no
// barrier keeps apart is soon seen, and seen again in every run. Items that wait for ever end the program.
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ucontext.h>
#include <utility>
#include <vector>

struct Fiber {
    int item;
    std::unique_ptr<char[]> stack;
    ucontext_t start;
    std::jmp_buf place;
    bool begun, ended;
};

// of the fiber that goes on
int local_id;
Fiber *running;

// One step of what goes on beside the items, such as copies, by chance and when no item can go on; whether there was one.
bool (*step_beside)() = [] { return false; };
std::vector<Fiber *> ready;
std::jmp_buf chooser;

inline void wake(std::vector<Fiber *> &waiting)
{
    ready.insert(ready.end(), waiting.begin(), waiting.end());
    waiting.clear();
}

// Others go on, until this one is woken and chosen.
inline void wait_in(std::vector<Fiber *> &waiting)
{
    waiting.push_back(running);
    if (!_setjmp(running->place))
        _longjmp(chooser, 1);
}

// Numbers below `count` without a visible order, and the same ones in every run.
inline std::size_t by_lot(std::size_t count)
{
    static std::uint64_t state = 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % count;
}

template <class F> F *kernel_of_group;

template <class F> void from_begin_to_end()
{
    (*kernel_of_group<F>)();
    running->ended = true;
    _longjmp(chooser, 1);
}

inline void choose()
{
    _setjmp(chooser);
    while (true) {
        const bool by_chance = by_lot(16) == 0;
        if ((ready.empty() || by_chance) && step_beside())
            continue;
        if (ready.empty())
            return;
        if (by_chance)
            std::swap(ready[by_lot(ready.size())], ready.back());
        running = ready.back();
        ready.pop_back();
        local_id = running->item;
        if (std::exchange(running->begun, true))
            _longjmp(running->place, 1);
        setcontext(&running->start);
    }
}

// Calls `kernel` for every work-item of a group, and returns when all have ended.
template <class F> void run_group(int items, F kernel)
{
    constexpr std::size_t STACK = 1 << 18;
    std::vector<Fiber> fibers(items);
    kernel_of_group<F> = &kernel;
    for (int item = 0; Fiber &fiber : fibers) {
        fiber.item = item++;
        fiber.stack = std::make_unique_for_overwrite<char[]>(STACK);
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = fiber.stack.get();
        fiber.start.uc_stack.ss_size = STACK;
        makecontext(&fiber.start, from_begin_to_end<F>, 0);
        ready.push_back(&fiber);
    }
    choose();
    for (const Fiber &fiber : fibers)
        if (!fiber.ended) {
            std::fprintf(stderr, "item %d waits for ever\n", fiber.item);
            std::exit(4);
        }
}

// A barrier of `count` arrivals, of items that wait and of others.
class Meeting {
    int count, missing;
    std::vector<Fiber *> waiting;

  public:
    explicit Meeting(int arrivals) : count(arrivals), missing(arrivals) {}

    void arrive()
    {
        if (--missing == 0) {
            missing = count;
            wake(waiting);
        }
    }

    // `done_last` is done when all have come, before any goes on
    template <class F> void arrive_and_wait(F done_last)
    {
        if (missing == 1) {
            done_last();
            arrive();
        } else {
            missing--;
            wait_in(waiting);
        }
    }

    void arrive_and_wait()
    {
        arrive_and_wait([] {});
    }
};
