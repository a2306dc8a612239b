// The MQL5 built-ins that mtbridge uses, in C++20, so that the unmodified sources run on any system.
// A stand-in: it says what we read in the reference, and nothing about MetaEditor. translator/ rewrites the sources.
#pragma once
#include "types.hpp"
#include "arrays.hpp"
#include "strings.hpp"
#include "matrices.hpp"
#include "printing.hpp"
#include "program.hpp"
#include "sockets.hpp"
#include "market.hpp"
#include "files.hpp"
#include "opencl.hpp"

void OnStart();

int main()
{
    mqlrt::watch();
    OnStart();
    mqlrt::say_how_it_ended();
    if (mqlrt::sockets.size())
        mqlrt::critical("the program ended with an open socket");
    mqlrt::say_what_is_open();
    return 0;
}
