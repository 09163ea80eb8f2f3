# A video server: 48 viewers get 96 MiB a second between them, and every ten seconds a film that nobody watches is replaced. Films have
# 8 MiB, where filebench's have 10 GiB.

set $dir=/tmp
set $filesize=8m

eventgen rate=96

define fileset name=watched,path=$dir,size=$filesize,entries=32,dirwidth=4,prealloc
define fileset name=stored,path=$dir,size=$filesize,entries=194,dirwidth=20,prealloc=50

define process name=editor
{
  thread name=editor
  {
    flowop deletefile name=drop,filesetname=stored
    flowop createfile name=make,filesetname=stored,fd=1
    flowop writewholefile name=replace,iosize=1m,fd=1,srcfd=1
    flowop closefile name=made,fd=1
    flowop delay name=rest,value=10
  }
}

define process name=viewers
{
  thread name=viewer,instances=48
  {
    flowop read name=watch,filesetname=watched,iosize=256k
    flowop bwlimit name=limit,target=watch
  }
}

run 60
