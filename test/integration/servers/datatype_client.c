/* Reads and writes datatypes with holes through OrangeFS's own client library, and compares every
 * byte with a model in memory. Compiled by the test that runs it, where OrangeFS is installed.
 *
 *   datatype_client DIRECTORY DISTRIBUTION
 *
 * DISTRIBUTION is simple_stripe or twod_stripe. Prints a line for each transfer, equal in every run,
 * and ends with 0 when all bytes were right. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pvfs2.h>

enum { kFileSize = 6 << 20, kMostRuns = 100 };

struct run {
  int64_t begin;
  int64_t size;
};

/* One datatype: the library's request, and the bytes that it selects. */
struct datatype {
  const char* name;
  PVFS_Request request;
  struct run runs[kMostRuns];
  int run_count;
  int64_t extent;
  int64_t size;
};

static PVFS_credential credential;
static PVFS_object_ref file;
static unsigned char* model;     /* the file's bytes */
static int64_t model_size;       /* where it ends */
static unsigned char* buffer;
static int wrong;

static void require(int result, const char* what) {
  if (result >= 0) return;
  PVFS_perror(what, result);
  exit(2);
}

static void add_run(struct datatype* type, int64_t begin, int64_t size) {
  type->runs[type->run_count].begin = begin;
  type->runs[type->run_count].size = size;
  ++type->run_count;
  type->size += size;
}

static struct datatype contiguous(int32_t size) {
  struct datatype type = {.name = "contiguous", .extent = size};
  require(PVFS_Request_contiguous(size, PVFS_BYTE, &type.request), "contiguous");
  add_run(&type, 0, size);
  return type;
}

static struct datatype vector(int32_t count, int32_t length, int64_t stride) {
  struct datatype type = {.name = "vector", .extent = (count - 1) * stride + length};
  require(PVFS_Request_vector(count, length, stride, PVFS_BYTE, &type.request), "vector");
  for (int32_t i = 0; i < count; ++i) add_run(&type, i * stride, length);
  return type;
}

static struct datatype nested_vector(int32_t rows, int64_t row_stride, int32_t count,
                                     int32_t length, int64_t stride) {
  struct datatype type = {.name = "vector of vectors"};
  PVFS_Request inner;
  require(PVFS_Request_vector(count, length, stride, PVFS_BYTE, &inner), "vector");
  require(PVFS_Request_hvector(rows, 1, row_stride, inner, &type.request), "hvector");
  for (int32_t row = 0; row < rows; ++row) {
    for (int32_t i = 0; i < count; ++i) add_run(&type, row * row_stride + i * stride, length);
  }
  type.extent = (rows - 1) * row_stride + (count - 1) * stride + length;
  return type;
}

static struct datatype indexed(void) {
  enum { kBlocks = 40 };
  struct datatype type = {.name = "indexed"};
  int32_t lengths[kBlocks];
  PVFS_size places[kBlocks];
  int64_t at = 0;
  for (int i = 0; i < kBlocks; ++i) {
    at += i * 311;
    lengths[i] = 1000 + i * 777;
    places[i] = at;
    add_run(&type, at, lengths[i]);
    at += lengths[i];
  }
  require(PVFS_Request_indexed(kBlocks, lengths, places, PVFS_BYTE, &type.request), "indexed");
  type.extent = at;
  return type;
}

static struct datatype structure(void) {
  struct datatype type = {.name = "struct"};
  PVFS_Request members[3];
  int32_t lengths[3] = {2, 1, 70000};
  PVFS_size places[3] = {100, 50000, 300000};
  require(PVFS_Request_contiguous(5000, PVFS_INT, &members[0]), "contiguous");
  require(PVFS_Request_vector(9, 4096, 20000, PVFS_BYTE, &members[1]), "vector");
  members[2] = PVFS_BYTE;
  require(PVFS_Request_struct(3, lengths, places, members, &type.request), "struct");
  add_run(&type, 100, 40000);
  for (int i = 0; i < 9; ++i) add_run(&type, 50000 + i * 20000, 4096);
  add_run(&type, 300000, 70000);
  type.extent = 370000 - 100; /* from the lowest byte on */
  return type;
}

static struct datatype resized(void) {
  struct datatype type = {.name = "resized", .extent = 131072};
  PVFS_Request inner;
  require(PVFS_Request_contiguous(32768, PVFS_BYTE, &inner), "contiguous");
  require(PVFS_Request_resized(inner, 0, type.extent, &type.request), "resized");
  add_run(&type, 0, 32768);
  return type;
}

/* Maps a position in the stream of repetitions of `type` to its place in the file. */
static int64_t place_of(const struct datatype* type, int64_t position) {
  const int64_t place = position / type->size * type->extent;
  int64_t rest = position % type->size;
  int i = 0;
  while (rest >= type->runs[i].size) rest -= type->runs[i++].size;
  return place + type->runs[i].begin + rest;
}

static uint64_t hash_of(const unsigned char* bytes, int64_t size) {
  uint64_t hash = 14695981039346656037ULL;
  for (int64_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 1099511628211ULL;
  return hash;
}

static int64_t transfer(const struct datatype* type, int64_t offset, int64_t size,
                        enum PVFS_io_type direction) {
  PVFS_Request memory;
  PVFS_sysresp_io response;
  require(PVFS_Request_contiguous((int32_t)size, PVFS_BYTE, &memory), "memory");
  require(PVFS_sys_io(file, type->request, offset, buffer, memory, &credential, &response,
                      direction, NULL),
          direction == PVFS_IO_READ ? "read" : "write");
  PVFS_Request_free(&memory);
  return response.total_completed;
}

static void tell(const char* what, const struct datatype* type, int64_t offset, int64_t size,
                 int64_t completed, uint64_t hash, int64_t bad) {
  printf("%s %s of %lld bytes at %lld: %lld %016llx\n", what, type->name, (long long)size,
         (long long)offset, (long long)completed, (unsigned long long)hash);
  if (bad < 0) return;
  printf("WRONG: position %lld\n", (long long)bad);
  wrong = 1;
}

static void read_and_compare(const struct datatype* type, int64_t offset, int64_t size) {
  int64_t expected = 0;
  int64_t bad = -1;
  if (size > 2 * (int64_t)kFileSize) exit(2);
  memset(buffer, 0xee, (size_t)size);
  const int64_t completed = transfer(type, offset, size, PVFS_IO_READ);
  for (int64_t i = 0; i < size; ++i) {
    const int64_t place = place_of(type, offset + i);
    if (place >= model_size) break;
    ++expected;
    if (bad < 0 && buffer[i] != model[place]) bad = i;
  }
  /* Past the end of the file, the library counts bytes that do not exist. */
  if (bad < 0 && expected == size && completed != size) bad = completed;
  tell("read", type, offset, size, completed, hash_of(buffer, expected), bad);
}

static void write_pattern(const struct datatype* type, int64_t offset, int64_t size) {
  static uint32_t state = 1;
  for (int64_t i = 0; i < size; ++i) {
    state = state * 1664525U + 1013904223U;
    buffer[i] = (unsigned char)(state >> 24);
    const int64_t place = place_of(type, offset + i);
    model[place] = buffer[i];
    if (place >= model_size) model_size = place + 1;
  }
  const int64_t completed = transfer(type, offset, size, PVFS_IO_WRITE);
  tell("write", type, offset, size, completed, 0, completed == size ? -1 : 0);
}

static void make_file(PVFS_object_ref directory, const char* name, const char* distribution) {
  PVFS_sysresp_create created;
  PVFS_sys_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.owner = credential.userid;
  attributes.group = credential.group_array[0];
  attributes.perms = 0644;
  attributes.dfile_count = 2;
  attributes.mask = PVFS_ATTR_SYS_ALL_SETABLE | PVFS_ATTR_SYS_DFILE_COUNT;
  PVFS_sys_dist* dist = PVFS_sys_dist_lookup(distribution);
  if (dist == NULL) require(-1, "distribution");
  if (strcmp(distribution, "twod_stripe") == 0) {
    int64_t factor = 4;
    require(PVFS_sys_dist_setparam(dist, "group_strip_factor", &factor), "factor");
  }
  (void)PVFS_sys_remove((char*)name, directory, &credential, NULL);
  require(PVFS_sys_create((char*)name, directory, attributes, &credential, dist, &created, NULL,
                          NULL),
          "create");
  file = created.ref;
  memset(model, 0, 2 * (size_t)kFileSize);
  model_size = 0;
}

/* OrangeFS's directio loses bytes if two flow buffers share a block of 4 KiB. So only types of whole
 * blocks are written in large pieces, within the file and (with holes) past its end. Others are
 * written in pieces that fit into one buffer. */
static void write_somewhere(const struct datatype* type, int64_t stripe) {
  int whole_blocks = type->extent % 4096 == 0;
  for (int i = 0; i < type->run_count; ++i) {
    if (type->runs[i].begin % 4096 != 0 || type->runs[i].size % 4096 != 0) whole_blocks = 0;
  }
  if (whole_blocks) {
    write_pattern(type, 0, stripe);
    write_pattern(type, type->size / 5 / 4096 * 4096, stripe / 3 / 4096 * 4096);
    write_pattern(type, stripe, stripe / 4 / 4096 * 4096);
  } else {
    for (int i = 0; i < 12; ++i) write_pattern(type, i * (stripe / 13) + i * 777, 60000);
  }
}

/* Reads and writes with the type: at the start, inside, across the end, and past it. */
static void exercise(const struct datatype* type) {
  const struct datatype bytes = contiguous(1);
  const int64_t stripe = kFileSize / type->extent * type->size; /* stream bytes that fit into the file */
  write_pattern(&bytes, 0, kFileSize);
  read_and_compare(&bytes, 0, kFileSize);
  read_and_compare(type, 0, stripe);
  read_and_compare(type, type->size / 3, stripe / 2);
  read_and_compare(type, stripe / 2, 100000);
  read_and_compare(type, 0, stripe + stripe / 5); /* past the end */
  read_and_compare(type, 2 * stripe + type->size, 300000); /* nothing at all */
  write_somewhere(type, stripe);
  read_and_compare(&bytes, 0, kFileSize + kFileSize / 2);
  read_and_compare(type, stripe / 2, stripe);
}

/* A file of two pieces that are far apart. */
static void exercise_holes(const struct datatype* type) {
  const struct datatype bytes = contiguous(1);
  write_pattern(&bytes, 3 << 20, 5000);
  write_pattern(&bytes, 5 << 20, 70000);
  for (int times = 1; times < 4; ++times) read_and_compare(type, 0, type->size * times);
  read_and_compare(&bytes, 0, kFileSize);
}

/* Transfers whose end a proxy cannot see if it knows only an upper bound: each server's part is a
 * multiple of the flow buffer, or empty. There are more of them than a server works on at a time. */
static void exercise_whole_buffers(void) {
  const struct datatype bytes = contiguous(1);
  const struct datatype halves = vector(64, 32768, 65536);
  const struct datatype first_strips = vector(32, 65536, 131072); /* all on one server */
  write_pattern(&bytes, 0, kFileSize);
  for (int i = 0; i < 20; ++i) {
    read_and_compare(&halves, 0, 2 << 20);
    read_and_compare(&first_strips, 0, 1 << 20);
    read_and_compare(&bytes, i * 524288LL % (5 << 20), 524288);
    read_and_compare(&halves, 8 << 20, 524288);
  }
}

int main(int argc, char** argv) {
  char path[PVFS_NAME_MAX];
  char name[64]; /* unique: the server may still work on an earlier run's file */
  PVFS_fs_id file_system;
  PVFS_sysresp_lookup directory;
  if (argc != 3) return 2;
  snprintf(name, sizeof name, "datatypes-%d", (int)getpid());
  require(PVFS_util_init_defaults(), "init");
  require(PVFS_util_gen_credential_defaults(&credential), "credential");
  require(PVFS_util_resolve(argv[1], &file_system, path, sizeof path), "resolve");
  if (path[0] == '\0') strcpy(path, "/");
  require(PVFS_sys_lookup(file_system, path, &credential, &directory, PVFS2_LOOKUP_LINK_FOLLOW,
                          NULL),
          "lookup");
  model = malloc(2 * (size_t)kFileSize);
  buffer = malloc(2 * (size_t)kFileSize);
  if (model == NULL || buffer == NULL) return 2;

  struct datatype types[] = {contiguous(100000),
                             vector(50, 4096, 16384),
                             vector(100, 33333, 50000),
                             nested_vector(4, 1 << 20, 20, 20480, 40960),
                             indexed(),
                             structure(),
                             resized()};
  for (size_t i = 0; i < sizeof types / sizeof *types; ++i) {
    make_file(directory.ref, name, argv[2]);
    exercise(&types[i]);
    /* OrangeFS takes the sum of the datafiles for the size of a twod_stripe file: too small for holes. */
    if (strcmp(argv[2], "twod_stripe") == 0) continue;
    make_file(directory.ref, name, argv[2]);
    exercise_holes(&types[i]);
  }
  make_file(directory.ref, name, argv[2]);
  exercise_whole_buffers();
  (void)PVFS_sys_remove(name, directory.ref, &credential, NULL);
  PVFS_sys_finalize();
  return wrong;
}
