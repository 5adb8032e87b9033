// Our files inside a program that closes descriptors, limits sizes and changes folders.
#include "emitter/own_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "session_fixture.h"

namespace traceaf::emitter {
namespace {

class OwnFileTest : public SessionTest {};

std::string content(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_F(OwnFileTest, IsPrivateNewAndOutOfTheWay) {
  OwnFile f;
  ASSERT_EQ(f.create(file("a").c_str()), 0);
  struct stat info {};
  ASSERT_EQ(stat(file("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_GE(f.fd(), 100);
  EXPECT_EQ(fcntl(f.fd(), F_GETFD), FD_CLOEXEC);
  OwnFile second;
  EXPECT_EQ(second.create(file("a").c_str()), -EEXIST);
  ASSERT_EQ(symlink("/etc/hostname-that-is-not", file("link").c_str()), 0);
  EXPECT_LT(second.create(file("link").c_str()), 0);
  f.close();
}

TEST_F(OwnFileTest, SurvivesAProgramThatClosesItsDescriptor) {
  OwnFile f;
  ASSERT_EQ(f.create(file("a").c_str()), 0);
  ASSERT_EQ(f.append("one ", 4), 0);
  const int number = f.fd();
  ::close(number);
  ASSERT_EQ(f.append("two ", 4), 0);
  // The number now belongs to a file of the program: it must not get a byte.
  const int ours = f.fd();
  ::close(ours);
  const int theirs = open(file("theirs").c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(dup2(theirs, ours), ours);
  ASSERT_EQ(f.append("three", 5), 0);
  EXPECT_EQ(content(file("a")), "one two three");
  EXPECT_EQ(content(file("theirs")), "");
  EXPECT_EQ(fcntl(ours, F_GETFD), 0);  // still open, still theirs
  ::close(ours);
  ::close(theirs);
  f.close();
}

TEST_F(OwnFileTest, GivesUpWhenItsNameLeadsElsewhere) {
  OwnFile f;
  ASSERT_EQ(f.create(file("a").c_str()), 0);
  ::close(f.fd());
  std::filesystem::remove(file("a"));
  // The new file may get the inode number of the old one; the birth time, in ticks of the kernel, tells them apart.
  usleep(30000);
  std::ofstream(file("a")) << "other";
  EXPECT_EQ(f.append("x", 1), -EBADF);
  EXPECT_EQ(content(file("a")), "other");
}

TEST_F(OwnFileTest, SizeLimitIsAnErrorNotASignal) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    OwnFile f;
    char bytes[3000] = {};
    const bool ok = f.create(file("a").c_str()) == 0 && f.append(bytes, 3000) == 0 && f.append(bytes, 3000) == -EFBIG &&
                    f.reserve(0, 8192) == -EFBIG;
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::filesystem::file_size(file("a")), 3000u);
}

TEST_F(OwnFileTest, NamesAreExpandedMadeAbsoluteAndNumbered) {
  char name[1200];
  const std::string pid = std::to_string(getpid());
  const std::string here = std::filesystem::current_path().string();
  ASSERT_TRUE(expand_name("/x/%p-%%-%t.traf", 0, 5000000000, name, sizeof(name)));
  EXPECT_EQ(name, "/x/" + pid + "-%-5.traf");
  ASSERT_TRUE(expand_name("t.%e.traf", 0, 0, name, sizeof(name)));
  EXPECT_EQ(name, here + "/t.unit_emitter.traf");
  ASSERT_TRUE(expand_name("t.traf", 3, 0, name, sizeof(name)));
  EXPECT_EQ(name, here + "/t.3.traf");
  ASSERT_TRUE(expand_name("/t", 2, 0, name, sizeof(name)));
  EXPECT_STREQ(name, "/t.2");
  ASSERT_TRUE(expand_name("/%n/t.traf", 2, 0, name, sizeof(name)));
  EXPECT_STREQ(name, "/2/t.traf");
  ASSERT_TRUE(expand_name("/%q%", 0, 0, name, sizeof(name)));
  EXPECT_STREQ(name, "/%q%");
  EXPECT_FALSE(expand_name("/123456789", 0, 0, name, 10));
}

}  // namespace
}  // namespace traceaf::emitter
