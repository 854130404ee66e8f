// Catch2 under one name: version 2 (Debian 12) and version 3 put their header in different places.
#pragma once
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
