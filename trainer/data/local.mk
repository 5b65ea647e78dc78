# SPDX-License-Identifier: Apache-2.0
# Data sets: the interface, pictures, tokenizers, stores, formats and the loader.
# The data set interface.
libtrainer_la_SOURCES += trainer/data/data_account.c trainer/data/data_account.h trainer/data/dataset.c trainer/data/dataset.h
libtrainer_la_SOURCES += trainer/data/class_names.c trainer/data/class_names.h
# Pixels and pictures.
libtrainer_la_SOURCES += trainer/data/pictures/npy.c trainer/data/pictures/npy.h
libtrainer_la_SOURCES += trainer/data/pictures/bitmap.c trainer/data/pictures/codec.h
libtrainer_la_SOURCES += trainer/data/pictures/picture.c trainer/data/pictures/codec.c trainer/data/pictures/picture.h
libtrainer_la_SOURCES += trainer/data/pictures/augment.c trainer/data/pictures/augment.h trainer/data/loader/mixup.c
libtrainer_la_SOURCES += trainer/data/pictures/pixels.c trainer/data/pictures/pixels.h
libtrainer_la_SOURCES += trainer/data/pictures/restart.c
libtrainer_la_SOURCES += trainer/data/pictures/resize.c trainer/data/pictures/resize.h
# Texts and tokens.
libtrainer_la_SOURCES += trainer/data/tokenizer/foreign_tokens.c trainer/data/tokenizer/foreign_tokens.h
libtrainer_la_SOURCES += trainer/data/tokenizer/token_file.c trainer/data/tokenizer/token_file.h
libtrainer_la_SOURCES += trainer/data/tokenizer/tokenizer.c trainer/data/tokenizer/tokenizer.h
bpe_tokenizers = trainer/data/tokenizer/bpe.c trainer/data/tokenizer/bpe.h \
	trainer/data/tokenizer/text_change.c trainer/data/tokenizer/text_change.h \
	trainer/data/tokenizer/text_pattern.c trainer/data/tokenizer/text_pattern.h \
	trainer/data/tokenizer/tokenizer_encode.c trainer/data/tokenizer/tokenizer_encode.h \
	trainer/data/tokenizer/tokenizer_file.c trainer/data/tokenizer/vocabulary.c trainer/data/tokenizer/vocabulary.h
if HAVE_TOKENIZERS
libtrainer_la_SOURCES += $(bpe_tokenizers)
libtrainer_la_CPPFLAGS += $(PCRE2_CFLAGS) $(UTF8PROC_CFLAGS)
libtrainer_la_LIBADD += $(PCRE2_LIBS) $(UTF8PROC_LIBS)
else
EXTRA_DIST += $(bpe_tokenizers)
endif
# Conversations.
libtrainer_la_SOURCES += trainer/data/chat/chat_template.c trainer/data/chat/chat_template.h trainer/data/chat/template_inside.h
libtrainer_la_SOURCES += trainer/data/chat/chat.c trainer/data/chat/chat.h trainer/data/chat/conversation.c trainer/data/chat/conversation.h
libtrainer_la_SOURCES += trainer/data/chat/template_parse.c trainer/data/chat/template_values.c
# Stores of bytes, and containers of samples.
libtrainer_la_SOURCES += trainer/data/store/cache.c trainer/data/store/cache.h
libtrainer_la_SOURCES += trainer/data/store/cache_folder.c
libtrainer_la_SOURCES += trainer/data/store/fetch.c trainer/data/store/fetch.h trainer/data/store/fetch_inside.h
libtrainer_la_SOURCES += trainer/data/store/fetch_block.c trainer/data/store/fetch_peer.c trainer/data/store/fetch_serve.c
libtrainer_la_SOURCES += trainer/data/store/peers.c trainer/data/store/peers.h
libtrainer_la_SOURCES += trainer/data/store/peer_server.c
libtrainer_la_SOURCES += trainer/data/store/fetch_thread.c
libtrainer_la_SOURCES += trainer/data/store/listing.c
libtrainer_la_SOURCES += trainer/data/store/data_objects.c trainer/data/store/data_objects.h
libtrainer_la_SOURCES += trainer/data/store/readahead.c trainer/data/store/readahead.h
libtrainer_la_SOURCES += trainer/data/store/transfer.c trainer/data/store/transfer.h
libtrainer_la_SOURCES += trainer/data/container/arrow.c trainer/data/container/arrow_schema.c trainer/data/container/arrow_schema.h trainer/data/container/container_scan.h
libtrainer_la_SOURCES += trainer/data/container/labels.c trainer/data/container/labels.h trainer/data/container/lmdb.c
libtrainer_la_SOURCES += trainer/data/container/parquet.c trainer/data/container/parquet.h
libtrainer_la_SOURCES += trainer/data/container/parquet_footer.c
libtrainer_la_SOURCES += trainer/data/container/parquet_page.c trainer/data/container/parquet_page.h
libtrainer_la_SOURCES += trainer/data/container/parquet_records.c
libtrainer_la_SOURCES += trainer/data/container/parquet_set.c
libtrainer_la_SOURCES += trainer/data/container/wire_formats.c trainer/data/container/wire_formats.h
libtrainer_la_SOURCES += trainer/data/container/samples.c trainer/data/container/samples.h
libtrainer_la_SOURCES += trainer/data/container/shard_index.c
libtrainer_la_SOURCES += trainer/data/container/shard_list.c trainer/data/container/shard_list.h trainer/data/container/shard_entries.c
libtrainer_la_SOURCES += trainer/data/container/shard_writer.c trainer/data/container/shard_writer.h
libtrainer_la_SOURCES += trainer/data/container/tar_walk.c trainer/data/container/tar_walk.h
libtrainer_la_SOURCES += trainer/data/container/tfrecord.c
libtrainer_la_SOURCES += trainer/data/container/decompress.c trainer/data/container/decompress.h
libtrainer_la_SOURCES += trainer/data/container/webdataset.c trainer/data/container/webdataset.h
# Corpora to token files.
libtrainer_la_SOURCES += trainer/data/corpus/documents.c trainer/data/corpus/documents.h
libtrainer_la_SOURCES += trainer/data/corpus/json_member.c
libtrainer_la_SOURCES += trainer/data/corpus/texts.c trainer/data/corpus/texts.h
libtrainer_la_SOURCES += trainer/data/corpus/tokenize.c trainer/data/corpus/tokenize.h
libtrainer_la_SOURCES += trainer/data/corpus/job_ring.c trainer/data/corpus/job_ring.h
# Formats, each in one file or a few; formats.def lists them.
libtrainer_la_SOURCES += trainer/data/formats/cifar.c trainer/data/formats/folder.c trainer/data/formats/folder.h
libtrainer_la_SOURCES += trainer/data/formats/folder_remote.c
libtrainer_la_SOURCES += trainer/data/formats/folder_scan.c trainer/data/formats/formats.c trainer/data/formats/cache_dir.c
libtrainer_la_SOURCES += trainer/data/formats/formats.def trainer/data/formats/formats.h trainer/data/formats/foreign.c trainer/data/formats/gzip_file.c trainer/data/formats/held_out.c trainer/data/formats/idx.c
libtrainer_la_SOURCES += trainer/data/formats/image_set.c trainer/data/formats/image_set.h
libtrainer_la_SOURCES += trainer/data/formats/hdf5.c trainer/data/formats/hdf5_array.c trainer/data/formats/hdf5_array.h
libtrainer_la_SOURCES += trainer/data/formats/shards.c trainer/data/formats/shards_read.c trainer/data/formats/shards_inside.h
libtrainer_la_SOURCES += trainer/data/formats/shards_find.c
libtrainer_la_SOURCES += trainer/data/formats/synthetic.c
libtrainer_la_SOURCES += trainer/data/formats/document_pack.c trainer/data/formats/pieces.c trainer/data/formats/pieces.h trainer/data/formats/document_pack.h
libtrainer_la_SOURCES += trainer/data/formats/page_cache.c
libtrainer_la_SOURCES += trainer/data/formats/synthetic.h
libtrainer_la_SOURCES += trainer/data/formats/chat_set.c trainer/data/formats/text.c
# Batches: order, slots, threads.
libtrainer_la_SOURCES += trainer/data/loader/announce.c trainer/data/loader/slots.c trainer/data/loader/slots.h
libtrainer_la_SOURCES += trainer/data/loader/fill.c trainer/data/loader/loader.c
libtrainer_la_SOURCES += trainer/data/loader/loader.h trainer/data/loader/sampler.c trainer/data/loader/sampler.h
picture_codecs = trainer/data/pictures/jpeg.c trainer/data/pictures/entropy.h trainer/data/pictures/entropy.c \
	trainer/data/pictures/png.c
if HAVE_IMAGES
libtrainer_la_SOURCES += $(picture_codecs)
libtrainer_la_CPPFLAGS += -DHAVE_IMAGES $(JPEG_CFLAGS) $(PNG_CFLAGS)
libtrainer_la_LIBADD += $(JPEG_LIBS) $(PNG_LIBS)
else
EXTRA_DIST += $(picture_codecs)
endif
if HAVE_WEBP
libtrainer_la_SOURCES += trainer/data/pictures/webp.c
libtrainer_la_CPPFLAGS += $(WEBP_CFLAGS)
libtrainer_la_LIBADD += $(WEBP_LIBS)
else
EXTRA_DIST += trainer/data/pictures/webp.c
endif
if HAVE_TIFF
libtrainer_la_SOURCES += trainer/data/pictures/tiff.c
libtrainer_la_CPPFLAGS += $(TIFF_CFLAGS)
libtrainer_la_LIBADD += $(TIFF_LIBS)
else
EXTRA_DIST += trainer/data/pictures/tiff.c
endif
libtrainer_la_CPPFLAGS += $(ZLIB_CFLAGS) $(ZSTD_CFLAGS) $(LZ4_CFLAGS) $(HDF5_CFLAGS)
libtrainer_la_LIBADD += $(ZLIB_LIBS) $(ZSTD_LIBS) $(LZ4_LIBS) $(SNAPPY_LIBS)
